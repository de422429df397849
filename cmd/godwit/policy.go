package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/topic/retry/plan"
)

// maxPolicy bounds a delivery policy's file, in bytes.
const maxPolicy = 256 << 10

type policy struct {
	Plan     planPolicy       `cmd:"" help:"Print the schedule of a delivery policy, with a chart."`
	Simulate operate.Simulate `cmd:"" help:"Have a server lay out what a delivery policy does to a subscription and what it is owed."`
}

type planPolicy struct {
	File     string `arg:"" optional:"" help:"JSON of a DeliveryPolicy, as a topic or a subscription has it; - is standard input."`
	Protocol string `placeholder:"NAME" enum:",http,https,sqs,lambda,firehose,email,email-json,sms,application" default:"" help:"In place of a file: the policy that a protocol has, such as sqs, sms or http."`
	Output   string `env:"-" short:"o" enum:"text,json" default:"text" help:"How to print: ${enum} (${default})."`
	SVG      string `name:"svg" placeholder:"FILE" help:"Also draw a picture into a file; without a policy, of the four backoff functions."`
}

var errNoPolicy = errors.New("want a FILE, or --protocol NAME, or only --svg FILE")

// Validate is called by the parser.
func (p *planPolicy) Validate() error {
	if (p.File == "" && p.Protocol == "" && p.SVG == "") || (p.File != "" && p.Protocol != "") {
		return errNoPolicy
	}
	return nil
}

// Run prints the plan.
func (p *planPolicy) Run(pr *process) error {
	text, picture := plan.FunctionsText, plan.FunctionsSVG
	if p.File != "" || p.Protocol != "" {
		chosen, err := p.plan(pr.stdin)
		if err != nil {
			return err
		}
		text, picture = chosen.Text, chosen.SVG
		if p.Output == "json" {
			text = chosen.JSON
		}
	}
	if err := text(pr.stdout); err != nil {
		return err
	}
	if p.SVG == "" {
		return nil
	}
	var drawn bytes.Buffer
	if err := picture(&drawn); err != nil {
		return err
	}
	return os.WriteFile(p.SVG, drawn.Bytes(), 0o644)
}

func (p *planPolicy) plan(stdin io.Reader) (plan.Plan, error) {
	if p.Protocol != "" {
		chosen, _ := plan.OfProtocol(p.Protocol) // the parser knows no others
		return chosen, nil
	}
	name, from := p.File, stdin
	if p.File == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(p.File)
		if err != nil {
			return plan.Plan{}, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	document, err := io.ReadAll(io.LimitReader(from, maxPolicy+1))
	if err == nil && len(document) > maxPolicy {
		err = fmt.Errorf("longer than %d bytes", maxPolicy)
	}
	var chosen plan.Plan
	if err == nil {
		chosen, err = plan.Of(name, string(document))
	}
	if said, ok := refusal.Of(err); ok {
		err = said
	}
	if err != nil {
		return plan.Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	return chosen, nil
}
