package lambda

import (
	"context"
	"net/url"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// DownloadPath is where the code of functions can be downloaded; what a link asks
// for is in its parameter token.
const DownloadPath = "/_godwit/functions/code"

// linkLife is how long a link to code is good for, as with AWS.
const linkLife = 10 * time.Minute

// location is a link that the code of a version can be downloaded from, without
// credentials.
func (s *Service) location(call *api.Call, info *shard.FunctionInfo) string {
	token := s.DownloadKey.Token(info.ARN, info.Code.Upload, call.Time.Add(linkLife))
	return call.Host + DownloadPath + "?token=" + url.QueryEscape(token)
}

// Download is the zip that a token of a link is for. Errors: AccessDenied for what
// is no token, or an expired one; ResourceNotFound if no version has the code any
// more.
func (s *Service) Download(ctx context.Context, token string, now time.Time) ([]byte, error) {
	fn, upload, ok := s.DownloadKey.Read(token, now)
	if !ok {
		return nil, fault.New(fault.AccessDenied, "The link is not valid, or not any more.")
	}
	return s.engine.FunctionUpload(ctx, fn, upload)
}
