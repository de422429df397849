// Package operate is a client of a server's operator API, which shows the answers to people or
// scripts.
package operate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"godwit.dev/godwit/cmd/godwit/signed"
)

// Connection has the flags of requests to a server, and of the output.
type Connection struct {
	Endpoint string        `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server (${default})."`
	Output   string        `short:"o" enum:"table,json" default:"table" help:"How to print: ${enum} (${default})."`
	Watch    time.Duration `placeholder:"TIME" help:"Ask again and again, after so long."`
}

// Streams are a command's output, and its input for questions; nil: nobody is asked.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // a person can be asked at In
}

// sure asks the person at a terminal, if there is one, whether to continue. Scripts are not
// asked.
func (s *Streams) sure(question string) error {
	if !s.Terminal {
		return nil
	}
	return s.confirmed(question)
}

// confirmed asks whether to continue: any answer but yes is errNotSure.
func (s *Streams) confirmed(question string) error {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	if s.In == nil {
		return errNotSure
	}
	line, _ := bufio.NewReader(io.LimitReader(s.In, 100)).ReadString('\n') // the end of the input is not a yes
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errNotSure
	}
	return nil
}

// requestTime bounds the time of one request.
const requestTime = 60 * time.Second

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// client sends requests to one server.
type client struct {
	endpoint string
	http     *http.Client
	failed   error     // why requests cannot be signed
	expires  time.Time // of the server's certificate; zero: it has shown none
}

func (c *Connection) client() *client {
	asking, err := signed.Client(requestTime)
	return &client{endpoint: strings.TrimRight(c.Endpoint, "/"), http: asking, failed: err}
}

// get requests a path of /_godwit/v1 with parameters, without empty ones.
func (c *client) get(ctx context.Context, path string, parameters url.Values, into any) error {
	for name, values := range parameters {
		if len(values) == 1 && values[0] == "" {
			parameters.Del(name)
		}
	}
	link := c.endpoint + "/_godwit/v1/" + path
	if len(parameters) > 0 {
		link += "?" + parameters.Encode()
	}
	return c.do(ctx, http.MethodGet, link, nil, into)
}

// post requests a change.
func (c *client) post(ctx context.Context, path string, body map[string]any, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, c.endpoint+"/_godwit/v1/"+path, text, into)
}

func (c *client) do(ctx context.Context, method, link string, body []byte, into any) error {
	if c.failed != nil {
		return c.failed
	}
	if !strings.HasPrefix(link, "http://") && !strings.HasPrefix(link, "https://") {
		return fmt.Errorf("--endpoint: want a URL such as http://127.0.0.1:4566, have %q", c.endpoint)
	}
	req, err := http.NewRequestWithContext(ctx, method, link, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
			err = fmt.Errorf("%w: a file of authorities to trust is named by AWS_CA_BUNDLE", err)
		}
		return fmt.Errorf("the server cannot be asked (--endpoint): %w", err)
	}
	defer resp.Body.Close()
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		c.expires = resp.TLS.PeerCertificates[0].NotAfter
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return refused(link, resp.StatusCode, text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// refusal is an error of a server.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refused(link string, status int, text []byte) error {
	var problem struct{ Error string }
	if json.Unmarshal(text, &problem) == nil && problem.Error != "" {
		return &refusal{Clean(problem.Error)}
	}
	if bytes.Contains(text, []byte("HTTP request to an HTTPS server")) { // so says Go's server
		return &refusal{"the server speaks TLS: want https:// in --endpoint"}
	}
	return &refusal{fmt.Sprintf("%s is answered with status %d: is it a Godwit of this version?", link, status)}
}

// arn is the ARN of a name; an ARN is returned as it is.
func (c *client) arn(ctx context.Context, service, name string) (string, error) {
	if strings.HasPrefix(name, "arn:") {
		return name, nil
	}
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("want a name or an ARN, and no URL, have %q", name)
	}
	var overview struct {
		Server struct{ Region, Account string }
	}
	if err := c.get(ctx, "overview", nil, &overview); err != nil {
		if strings.Contains(err.Error(), "godwit:GetOverview") {
			err = fmt.Errorf("%w (what a name stands for is asked for there: give the ARN)", err)
		}
		return "", err
	}
	if service == "lambda" {
		name = "function:" + name
	}
	return "arn:aws:" + service + ":" + overview.Server.Region + ":" + overview.Server.Account + ":" + name, nil
}

// object is a JSON object of an answer.
type object = map[string]any

// show sends a request and prints the answer, repeatedly if requested: until an interrupt,
// ignoring temporary failures such as a restart of the server.
func (c *Connection) show(s Streams, ask func(ctx context.Context, api *client) (answer any, print func(w io.Writer, answer any) error, err error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	api := c.client()
	for first := true; ; first = false {
		var b bytes.Buffer
		answer, print, err := ask(ctx, api)
		switch {
		case err == nil:
			err = c.write(&b, answer, print)
			if err != nil {
				return err
			}
		case first:
			return err
		case ctx.Err() != nil:
			return nil
		default:
			fmt.Fprintf(s.Err, "%v; asking again every %v\n", err, c.Watch)
		}
		if c.Watch > 0 && c.Output == "table" && err == nil {
			fmt.Fprint(s.Out, "\x1b[H\x1b[2J")
		}
		if _, err := s.Out.Write(b.Bytes()); err != nil || c.Watch <= 0 {
			return err
		}
		again := time.NewTimer(c.Watch)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil
		case <-again.C:
		}
	}
}

// write prints an answer in the requested format.
func (c *Connection) write(b *bytes.Buffer, answer any, print func(w io.Writer, answer any) error) error {
	if c.Output != "json" {
		return print(b, answer)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(answer); err != nil {
		return err
	}
	b.Write(escape(text.Bytes()))
	return nil
}
