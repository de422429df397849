package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// call is a request that the function signs with its own credentials.
type call struct {
	Service string `json:"service"`
	Type    string `json:"type"`   // of the content
	Target  string `json:"target"` // X-Amz-Target
	Method  string `json:"method"` // POST unless given
	Path    string `json:"path"`
	Body    string `json:"body"`
}

// answered is what came back.
type answered struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func (c *call) make(ctx context.Context) (*answered, error) {
	if c.Method == "" {
		c.Method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, strings.TrimRight(os.Getenv("AWS_ENDPOINT_URL"), "/")+"/"+c.Path, strings.NewReader(c.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", c.Type)
	if c.Target != "" {
		req.Header.Set("X-Amz-Target", c.Target)
	}
	keys := aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	sum := sha256.Sum256([]byte(c.Body))
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hex.EncodeToString(sum[:]), c.Service, os.Getenv("AWS_REGION"), time.Now()); err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &answered{resp.StatusCode, string(body)}, err
}
