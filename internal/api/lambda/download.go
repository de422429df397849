package lambda

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
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
	text := info.ARN.String() + "\n" + strconv.FormatUint(info.Code.Upload, 10) + "\n" + strconv.FormatInt(call.Time.Add(linkLife).Unix(), 10)
	token := base64.RawURLEncoding.EncodeToString(append(s.seal(text), text...))
	return call.Host + DownloadPath + "?token=" + url.QueryEscape(token)
}

func (s *Service) seal(text string) []byte {
	mac := hmac.New(sha256.New, s.DownloadKey[:])
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// Download is the zip that a token of a link is for. Errors: AccessDenied for what
// is no token, or an expired one; ResourceNotFound if no version has the code any
// more.
func (s *Service) Download(ctx context.Context, token string, now time.Time) ([]byte, error) {
	denied := fault.New(fault.AccessDenied, "The link is not valid, or not any more.")
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(sealed) < sha256.Size {
		return nil, denied
	}
	text := string(sealed[sha256.Size:])
	if !hmac.Equal(sealed[:sha256.Size], s.seal(text)) {
		return nil, denied
	}
	parts := strings.Split(text, "\n")
	fn, err := arn.Parse(parts[0])
	if err != nil || len(parts) != 3 {
		return nil, denied
	}
	upload, _ := strconv.ParseUint(parts[1], 10, 64)
	expires, _ := strconv.ParseInt(parts[2], 10, 64)
	if now.Unix() >= expires {
		return nil, denied
	}
	return s.engine.FunctionUpload(ctx, fn, upload)
}
