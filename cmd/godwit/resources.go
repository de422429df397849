package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/cmd/godwit/signed"
	"godwit.dev/godwit/internal/server/resources"
)

// exitDiffers is the exit code of a dry run that has found changes.
const exitDiffers = 2

var (
	errDiffers = errors.New("the server differs")
	errRefused = errors.New("not all changes were made: the lines that begin with an exclamation mark say why")
)

// requestTime bounds a request to a server of AWS's APIs.
const requestTime = time.Minute

// apis is a server of AWS's APIs, with the access key of the usual environment.
func apis(endpoint, operators, region string) (*resources.Server, error) {
	k, _, err := signed.Find()
	if err != nil {
		return nil, err
	}
	if region == "" {
		region = k.Region
	}
	asking, err := signed.Plain(requestTime)
	if err != nil {
		return nil, err
	}
	return &resources.Server{Endpoint: endpoint, OperatorEndpoint: operators, Region: region, Key: k.ID, Secret: k.Secret, Token: k.SessionToken, HTTP: asking}, nil
}

// withoutKey adds to a refusal of the access key that there was none to sign with.
func withoutKey(err error) error {
	refused, ok := errors.AsType[*resources.Refusal](err)
	if !ok || refused.Code != "InvalidClientTokenId" && refused.Code != "UnrecognizedClientException" {
		return err
	}
	if _, found, _ := signed.Find(); found {
		return err
	}
	return fmt.Errorf("%w (there is no access key in the environment, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor in a profile, AWS_PROFILE)", err)
}

func untilStopped() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

type exportResources struct {
	Endpoint         string `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server of AWS's APIs (${default}). Requests are signed with the access key of the usual environment or profile."`
	OperatorEndpoint string `type:"endpoint" placeholder:"URL" help:"Where the server answers its operator API, which has the sources: that of --admin-listen; by default --endpoint."`
	Region           string `placeholder:"NAME" help:"The region that is asked; by default that of AWS_REGION, or us-east-1."`
}

// Run prints the server's resources as a file.
func (e *exportResources) Run(p *process) error {
	ctx, stop := untilStopped()
	defer stop()
	from, err := apis(e.Endpoint, e.OperatorEndpoint, e.Region)
	if err != nil {
		return err
	}
	set, missed, err := from.Export(ctx)
	if err != nil {
		return withoutKey(err)
	}
	stderr := operate.Plain(p.stderr)
	for _, line := range missed {
		fmt.Fprintf(stderr, "godwit: not exported: %s\n", line)
	}
	return set.Write(p.stdout)
}

type applyResources struct {
	File             string `arg:"" help:"The file of resources, as godwit export writes it; - reads it from standard input."`
	Endpoint         string `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server (${default}). Requests are signed with the access key of the usual environment or profile."`
	OperatorEndpoint string `type:"endpoint" placeholder:"URL" help:"Where the server answers its operator API, which has the sources: that of --admin-listen; by default --endpoint."`
	Region           string `placeholder:"NAME" help:"The region that is asked; by default that of AWS_REGION, or us-east-1."`
	DryRun           bool   `env:"-" help:"Only print what would change. The status is 2 if anything would."`
}

// Run applies a file to a server.
func (a *applyResources) Run(p *process) error {
	in := p.stdin
	if a.File != "-" {
		f, err := os.Open(a.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	set, err := resources.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", a.File, err)
	}
	to, err := apis(a.Endpoint, a.OperatorEndpoint, a.Region)
	if err != nil {
		return err
	}
	return applyTo(to, set, a.DryRun, p.stdout)
}

func applyTo(to *resources.Server, set *resources.Set, dry bool, stdout io.Writer) error {
	ctx, stop := untilStopped()
	defer stop()
	stdout = operate.Plain(stdout)
	changes, err := (&resources.Applying{To: to, Dry: dry, Out: stdout}).Run(ctx, set)
	if err != nil {
		return withoutKey(err)
	}
	for _, c := range changes {
		if c.Refused != nil {
			return errRefused
		}
	}
	switch {
	case len(changes) == 0:
		_, err = fmt.Fprintln(stdout, "nothing differs")
	case dry:
		fmt.Fprintf(stdout, "%d would change\n", len(changes))
		err = errDiffers
	default:
		_, err = fmt.Fprintf(stdout, "%d changed\n", len(changes))
	}
	return err
}

type importResources struct {
	FromEndpoint         string `env:"-" required:"" type:"endpoint" placeholder:"URL" help:"The server to take from: AWS (https://sqs.REGION.amazonaws.com answers for queues only), LocalStack, ElasticMQ, another Godwit."`
	FromOperatorEndpoint string `env:"-" type:"endpoint" placeholder:"URL" help:"Where that server answers its operator API, if it is another Godwit with --admin-listen; by default --from-endpoint."`
	FromRegion           string `env:"-" placeholder:"NAME" help:"The region that is asked there; by default that of AWS_REGION, or us-east-1."`
	Endpoint             string `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server that gets them (${default}). Both are asked with the access key of the usual environment or profile."`
	OperatorEndpoint     string `type:"endpoint" placeholder:"URL" help:"Where the server answers its operator API, which has the sources: that of --admin-listen; by default --endpoint."`
	Region               string `placeholder:"NAME" help:"The region that gets them; by default that of AWS_REGION, or us-east-1."`
	DryRun               bool   `env:"-" help:"Only print what would change. The status is 2 if anything would."`
}

// Run copies resources from another server, and lists those that cannot be copied.
func (i *importResources) Run(p *process) error {
	ctx, stop := untilStopped()
	defer stop()
	from, err := apis(i.FromEndpoint, i.FromOperatorEndpoint, i.FromRegion)
	if err != nil {
		return err
	}
	to, err := apis(i.Endpoint, i.OperatorEndpoint, i.Region)
	if err != nil {
		return err
	}
	set, missed, err := from.Export(ctx)
	if err != nil {
		return withoutKey(err)
	}
	stdout := operate.Plain(p.stdout)
	for _, line := range append(missed, "functions, event-source mappings, log groups, metrics, users, roles, keys of KMS, delivery streams, platform applications, settings of SMS and numbers that opted out: import takes queues, topics, subscriptions and alarms", "messages") {
		fmt.Fprintf(stdout, "not taken: %s\n", line)
	}
	return applyTo(to, set, i.DryRun, p.stdout)
}
