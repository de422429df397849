// Package web posts batches to HTTP endpoints, in the form of Firehose's requests.
package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/publicnet"
)

// Endpoints posts over HTTP. It implements outlet.Endpoints. Redirects are not followed.
type Endpoints struct{ Transport http.RoundTripper }

var _ outlet.Endpoints = (*Endpoints)(nil)

// UserAgent is the User-Agent of Firehose.
const UserAgent = "Amazon Kinesis Data Firehose Agent/1.0"

// Bounds. Source: Firehose's developer guide, on HTTP endpoint requests and answers.
const (
	answerTime = 3 * time.Minute
	maxAnswer  = 1 << 20
	maxQuoted  = 300 // of an endpoint's answer
)

// Post implements outlet.Endpoints.
func (e *Endpoints) Post(ctx context.Context, p *outlet.Post) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, err := Body(p)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return &outlet.Error{Code: "HttpEndpoint.InvalidUrl", Message: "The URL of the endpoint cannot be used."}
	}
	h := r.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", UserAgent)
	h.Set("X-Amz-Firehose-Protocol-Version", "1.0")
	h.Set("X-Amz-Firehose-Request-Id", p.ID)
	h.Set("X-Amz-Firehose-Source-Arn", p.Source)
	if p.AccessKey != "" {
		h.Set("X-Amz-Firehose-Access-Key", p.AccessKey)
	}
	if len(p.Attributes) > 0 {
		common := map[string]string{}
		for _, a := range p.Attributes {
			common[*a.AttributeName] = *a.AttributeValue
		}
		text, err := json.Marshal(map[string]any{"commonAttributes": common})
		if err != nil {
			return err
		}
		// The one control character that JSON leaves as it is, and a header must not have.
		h.Set("X-Amz-Firehose-Common-Attributes", strings.ReplaceAll(string(text), "\x7f", `\u007f`))
	}
	if p.GZIP {
		h.Set("Content-Encoding", "gzip")
	}
	answer, err := e.Transport.RoundTrip(r) // a Client would follow redirects
	if err != nil {
		return failure(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return failure(ctx, err)
	}
	return judge(p, answer, text)
}

// Body is the body of a request to an endpoint.
func Body(p *outlet.Post) ([]byte, error) {
	const around = 16
	var out bytes.Buffer
	out.Grow(int(p.Size)*4/3 + int(p.Size)/around + 1<<10)
	var w io.Writer = &out
	var z *gzip.Writer
	if p.GZIP {
		z = gzip.NewWriter(&out)
		w = z
	}
	var line []byte
	line = append(line, `{"requestId":`...)
	line = strconv.AppendQuote(line, p.ID)
	line = append(line, `,"timestamp":`...)
	line = strconv.AppendInt(line, p.Time, 10)
	line = append(line, `,"records":[`...)
	first := true
	var failed error
	err := p.Records(func(data []byte) {
		if !first {
			line = append(line, ',')
		}
		first = false
		line = append(line, `{"data":"`...)
		line = base64.StdEncoding.AppendEncode(line, data)
		line = append(line, `"}`...)
		if _, err := w.Write(line); err != nil && failed == nil {
			failed = err
		}
		line = line[:0]
	})
	line = append(line, `]}`...)
	_, written := w.Write(line)
	if z != nil {
		written = errors.Join(written, z.Close())
	}
	return out.Bytes(), errors.Join(err, failed, written)
}

// judge interprets an answer. An endpoint has accepted a request only if its answer has the
// request's id.
func judge(p *outlet.Post, answer *http.Response, text []byte) error {
	quoted := string(text[:min(len(text), maxQuoted)])
	if answer.StatusCode != http.StatusOK {
		return &outlet.Error{
			Code:    "HttpEndpoint.DestinationException",
			Message: "The following response was received from the endpoint destination. " + strconv.Itoa(answer.StatusCode) + ": " + quoted,
			// The same batch would be as large again.
			Permanent: answer.StatusCode == http.StatusRequestEntityTooLarge,
		}
	}
	var said struct {
		RequestID string          `json:"requestId"`
		Timestamp json.RawMessage `json:"timestamp"`
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind != "application/json" || len(text) > maxAnswer || json.Unmarshal(text, &said) != nil || said.RequestID != p.ID || len(said.Timestamp) == 0 {
		return &outlet.Error{
			Code:    "HttpEndpoint.InvalidResponseFromDestination",
			Message: "The response received from the endpoint destination is invalid. It must be application/json, with the request's requestId and a timestamp. " + quoted,
		}
	}
	return nil
}

func failure(ctx context.Context, err error) error {
	code, text := "HttpEndpoint.ConnectionFailure", "The connection to the endpoint failed."
	switch {
	case errors.Is(err, publicnet.ErrForbidden):
		code, text = "HttpEndpoint.ForbiddenAddress", "The endpoint's address is not public."
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		code, text = "HttpEndpoint.RequestTimeout", "The request timed out."
	}
	return &outlet.Error{Code: code, Message: text}
}
