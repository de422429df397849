// Package testcontainers runs a Godwit in a container for a test, with an image that you have,
// or one that it builds of the binary alone:
//
//	c, err := testcontainers.Run(t.Context(), "", testcontainers.WithBinary("bin/godwit"))
//	tc.CleanupContainer(t, c)
//	config, err := c.Config(t.Context())
//	queues := sqs.NewFromConfig(config)
//
// A test in Go that needs no container has godwittest, which runs the server in its own process.
package testcontainers

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	tc "github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const port = "4566/tcp"

// Where the server's resources are, unless flags say otherwise.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// startTime bounds how long the server may take to be ready, once its image is there.
const startTime = time.Minute

// Container is a container that runs `godwit dev`.
type Container struct {
	*tc.DockerContainer
}

// Run starts a container of an image whose command is godwit's, as that of deploy/Dockerfile,
// and returns once the server is ready. Messages are in memory. The image is not named where
// WithBinary builds one. Where it fails the container may be there still: it is returned, to be
// terminated.
func Run(ctx context.Context, image string, options ...tc.ContainerCustomizer) (*Container, error) {
	options = append([]tc.ContainerCustomizer{
		tc.WithExposedPorts(port), tc.WithCmd("dev"), tc.WithEnv(map[string]string{"GODWIT_LISTEN": "0.0.0.0:4566", "GODWIT_STORE": "memory"}),
		tc.WithWaitStrategyAndDeadline(startTime, wait.ForHTTP("/_godwit/ready").WithPort(port)),
	}, options...)
	c, err := tc.Run(ctx, image, options...)
	if err != nil {
		err = fmt.Errorf("godwit in a container: %w", err)
	}
	if c == nil {
		return nil, err
	}
	return &Container{c}, err
}

// WithFlags adds flags of godwit dev, such as "--enforce".
func WithFlags(flags ...string) tc.CustomizeRequestOption { return tc.WithCmdArgs(flags...) }

// WithVirtualClock has the server's time stand still until Advance.
func WithVirtualClock() tc.CustomizeRequestOption {
	return WithFlags("--clock", "virtual", "--jitter", "0")
}

// WithBinary builds the image, of a godwit for Linux and nothing else:
//
//	CGO_ENABLED=0 GOOS=linux go build -o bin/godwit godwit.dev/godwit/cmd/godwit
func WithBinary(path string) tc.CustomizeRequestOption {
	return func(r *tc.GenericContainerRequest) error {
		archive, err := image(path)
		if err != nil {
			return err
		}
		return tc.WithDockerfile(tc.FromDockerfile{ContextArchive: archive})(r)
	}
}

// dockerfile is of an image without a base.
const dockerfile = "FROM scratch\nCOPY godwit /godwit\nENTRYPOINT [\"/godwit\"]\n"

// image is what an image is built of.
func image(binary string) (io.ReadSeeker, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{{"Dockerfile", 0o644, []byte(dockerfile)}, {"godwit", 0o755, program}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return bytes.NewReader(b.Bytes()), w.Close()
}

// URL is where the server answers, for the machine that the test runs on.
func (c *Container) URL(ctx context.Context) (string, error) {
	return c.PortEndpoint(ctx, port, "http")
}

// Config is for the SDK's clients.
func (c *Container) Config(ctx context.Context) (aws.Config, error) {
	url, err := c.URL(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	return aws.Config{Region: Region, BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}, nil
}

// Advance moves the clock of a server WithVirtualClock, from timer to timer, and returns once
// all that came due was done.
func (c *Container) Advance(ctx context.Context, d time.Duration) error {
	return c.post(ctx, "clock", map[string]string{"advance": d.String()})
}

// Fault makes a resource fail on purpose: unavailable, throttled, or none to end that. Of all
// of a service (arn:aws:sqs:us-east-1:000000000000:*) also internal and denied.
func (c *Container) Fault(ctx context.Context, arn, fault string) error {
	return c.post(ctx, "faults", map[string]string{"arn": arn, "fault": fault})
}

// Reset deletes what an account of the server has.
func (c *Container) Reset(ctx context.Context) error {
	return c.post(ctx, "reset", map[string]string{"account": Account})
}

func (c *Container) post(ctx context.Context, what string, body map[string]string) error {
	url, err := c.URL(ctx)
	if err != nil {
		return err
	}
	return post(ctx, url+"/_godwit/v1/"+what, body)
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

func post(ctx context.Context, url string, body map[string]string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode == http.StatusOK || err != nil {
		return err
	}
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(said, &refused) != nil || refused.Error == "" {
		refused.Error = answer.Status
	}
	return errors.New(refused.Error)
}
