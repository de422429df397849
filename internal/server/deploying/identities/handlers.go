// Package identities takes the steps of IAM's resources.
package identities

import "godwit.dev/godwit/internal/server/deploying/step"

// Handlers are those of the types of resources.
var Handlers = map[string]step.Handler{
	"AWS::IAM::Role":            {Create: createRole, Update: updateRole, Delete: deleteRole},
	"AWS::IAM::Group":           {Create: createGroup, Update: updateGroup, Delete: deleteGroup},
	"AWS::IAM::User":            {Create: createUser, Update: updateUser, Delete: deleteUser},
	"AWS::IAM::Policy":          {Create: putPolicy, Update: putPolicy, Delete: deletePolicy},
	"AWS::IAM::ManagedPolicy":   {Create: createManaged, Update: updateManaged, Delete: deleteManaged},
	"AWS::IAM::AccessKey":       {Create: createAccessKey, Update: updateAccessKey, Delete: deleteAccessKey},
	"AWS::IAM::InstanceProfile": {Create: createProfile, Update: updateProfile, Delete: deleteProfile},
}
