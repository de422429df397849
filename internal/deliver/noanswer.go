package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"godwit.dev/godwit/internal/publicnet"
)

// NoAnswer is the outcome of a request without an answer. The texts are fixed, because an
// error's own text may quote the endpoint or its data.
func NoAnswer(ctx context.Context, err error) Outcome {
	if errors.Is(err, publicnet.ErrOwn) {
		return Outcome{Class: ClientError, Detail: publicnet.ErrOwn.Error()}
	}
	if errors.Is(err, publicnet.ErrForbidden) {
		return Outcome{Class: ClientError, Detail: publicnet.ErrForbidden.Error()}
	}
	return Outcome{Class: ServerError, Detail: words(ctx, err)}
}

func words(ctx context.Context, err error) string {
	switch ctx.Err() {
	case context.DeadlineExceeded:
		return "no answer in time"
	case context.Canceled:
		return "cut off"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "DNS: no such host"
		}
		return "DNS: the name cannot be resolved"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "TLS: the certificate is for another name"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "TLS: the certificate is not trusted"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "TLS: the certificate has expired or is not valid yet"
		}
		return "TLS: the certificate is not valid"
	}
	if isTLS(err) {
		return "TLS: the handshake failed"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host unreachable"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed without an answer"
	case isTimeout(err):
		return "no answer in time"
	}
	return "no usable answer"
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.AlertError](err)
	// An https endpoint with a plain HTTP server; net/http has only this text for it.
	return ok || strings.HasPrefix(err.Error(), "http: server gave HTTP response to HTTPS client") ||
		strings.HasPrefix(err.Error(), "remote error: tls:") || strings.HasPrefix(err.Error(), "tls:")
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}
