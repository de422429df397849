package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// probeTime is how long a probe waits for an answer.
const probeTime = 3 * time.Second

// probe tries what a function might reach, all at once, and reports what came of it: a
// status and a body, "open", "refused", …
func probe(targets []string) map[string]string {
	type outcome struct{ target, text string }
	outcomes := make(chan outcome)
	for _, target := range targets {
		go func() {
			text, err := try(target)
			if err != nil {
				text = brief(err)
			}
			outcomes <- outcome{target, text}
		}()
	}
	all := map[string]string{}
	for range targets {
		o := <-outcomes
		all[o.target] = o.text
	}
	return all
}

func try(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	switch u.Scheme {
	case "http":
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			return "", err
		}
		resp, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body))), err
	case "name":
		addresses, err := net.DefaultResolver.LookupHost(ctx, u.Host)
		return strings.Join(addresses, " "), err
	case "ports": // those that somebody listens at
		var open []string
		for port := 1; port < 1<<16; port++ {
			if c, err := net.DialTimeout("tcp", net.JoinHostPort(u.Host, strconv.Itoa(port)), probeTime); err == nil {
				_ = c.Close()
				open = append(open, strconv.Itoa(port))
			}
		}
		return strings.Join(open, " "), nil
	case "abstract":
		c, err := net.Dial("unix", "@"+u.Host)
		if err != nil {
			return "", err
		}
		return "open", c.Close()
	case "file":
		text, err := os.ReadFile(u.Path)
		return string(text), err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, u.Scheme, u.Host)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if u.Path == "" {
		return "open", nil
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, u.Path[1:]); err != nil {
		return "", err
	}
	answer := make([]byte, 64<<10)
	n, err := conn.Read(answer)
	return string(answer[:n]), err
}

func brief(err error) string {
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	case errors.As(err, &name) && name.IsNotFound:
		return "no such name"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	}
	return err.Error()
}

// load sends bytes to an address over TCP, which sends them back, and answers with
// the time that it took, in ms.
func load(address string, size int) (int64, error) {
	conn, err := net.DialTimeout("tcp", address, probeTime)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		chunk := make([]byte, 256<<10)
		for left := size; left > 0; left -= len(chunk) {
			if _, err := conn.Write(chunk[:min(left, len(chunk))]); err != nil {
				sent <- err
				return
			}
		}
		sent <- conn.(*net.TCPConn).CloseWrite()
	}()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, conn, make([]byte, 256<<10))
	if err == nil {
		err = <-sent
	}
	if err == nil && n != int64(size) {
		err = fmt.Errorf("%d bytes of %d came back", n, size)
	}
	return time.Since(began).Milliseconds(), err
}
