// Package sdkhttp is the HTTP client that tests give to AWS's SDK.
package sdkhttp

import (
	"bytes"
	"io"
	"net/http"
)

// Client reads an answer to its end before the SDK sees it.
//
// The SDK (smithy-go 1.28) closes the request's body as soon as it has the
// answer's head. If net/http is then still probing that body for surplus
// bytes, it takes the closed body for a failed write and cuts the connection,
// and what has not been read of a large answer is lost. Servers as near as
// those of tests win that race now and then.
type Client struct{ inner *http.Client }

// Of is a Client that sends by inner.
func Of(inner *http.Client) Client { return Client{inner} }

// Do sends a request.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.inner.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}
