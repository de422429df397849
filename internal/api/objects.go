package api

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
)

// ReadsObject requires s3:GetObject on an object.
func ReadsObject(call *Call, bucket, key string) authorize.Need {
	return authorize.Need{Action: "s3:GetObject", Resource: arn.ARN{Service: "s3", Resource: bucket + "/" + key}.String(), Account: call.Account}
}
