package lambda

import (
	"context"
	"net/url"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// DownloadPath is the path where the code of functions is downloaded, with a token as the
// parameter.
const DownloadPath = "/_godwit/functions/code"

// linkLife is the lifetime of a download link, as with AWS.
const linkLife = 10 * time.Minute

// location is a download link for the code of a version. It requires no credentials.
func (s *Service) location(call *api.Call, info *shard.FunctionInfo) (string, error) {
	return s.link(call, info.ARN, info.Code.Upload)
}

// link is a download link for an upload of a function, or of a version of a layer.
func (s *Service) link(call *api.Call, of arn.ARN, upload uint64) (string, error) {
	token, err := s.Links.Token(of, upload, call.Time.Add(linkLife))
	return call.Host + DownloadPath + "?token=" + url.QueryEscape(token), err
}

// Download returns the zip of a link's token. Errors: AccessDenied for an invalid or expired
// token; ResourceNotFound if no version has the code any more.
func (s *Service) Download(ctx context.Context, token string, now time.Time) ([]byte, error) {
	fn, upload, ok := s.Links.Read(token, now)
	if !ok {
		return nil, fault.New(fault.AccessDenied, "The link is not valid, or not any more.")
	}
	if _, _, layer := fn.SplitLayer(); layer {
		return s.engine.LayerUpload(ctx, fn)
	}
	return s.engine.FunctionUpload(ctx, fn, upload)
}
