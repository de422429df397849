package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/sigv4"
)

// The targets of signatures: what it costs to find out who has sent a body.
const (
	signatureTime   = 6.0 // µs, of a body of 1 KiB
	signatureTimes  = 1.2 // × the digest of a large body
	signatureRounds = 15
	signatureRound  = 20 * time.Millisecond
)

// runSignatures verifies signatures in this process, with the signing key in the cache,
// and computes the digests of the same bodies in turn.
func runSignatures(ctx context.Context, b *bench) error {
	t := &table{
		title: "Signatures",
		note: fmt.Sprintf("One processor; µs for one request: its body's digest and the rest of the verification, the signing key being in the cache; "+
			"the least of %d rounds.", signatureRounds),
		header: []string{"body", "µs", "the digest alone", "quotient"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		verify, digest, err := signatureBodies(size)
		if err != nil {
			return err
		}
		whole, part := math.Inf(1), math.Inf(1) // the least counts: others only add
		for range signatureRounds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			whole, part = min(whole, each(verify)), min(part, each(digest))
		}
		t.add(fmt.Sprintf("%d KiB", size>>10), figure(whole), figure(part), figure(whole/part))
		switch {
		case size == 1<<10:
			b.judge(whole <= signatureTime, figure(whole)+" µs", "verifying a body of 1 KiB: at most %.0f µs", signatureTime)
		case size >= 64<<10:
			b.judge(whole <= signatureTimes*part, figure(whole/part)+" ×", "verifying a body of %d KiB: at most %.1f × its digest", size>>10, signatureTimes)
		}
	}
	return nil
}

// each is the time that a call takes, in µs.
func each(call func()) float64 {
	n, began := 0, time.Now()
	for time.Since(began) < signatureRound {
		for range 8 {
			call()
		}
		n += 8
	}
	return float64(time.Since(began).Nanoseconds()) / 1e3 / float64(n)
}

// signatureBodies gives what verifies a request with a body of a size, and what computes
// that body's digest.
func signatureBodies(size int) (verify, digest func(), err error) {
	const host, operation = "127.0.0.1:4566", "AmazonSQS.SendMessage"
	now, body := time.Now(), make([]byte, size)
	credential := sigv4.Credential{Secret: "a secret of some forty characters, as they", Caller: &caller.Caller{}}
	v := sigv4.New(sigv4.Options{
		Keys:   func(string, string) (sigv4.Credential, error) { return credential, nil },
		System: time.Now, Now: time.Now,
	})
	headers := []header{
		{"amz-sdk-invocation-id", "9ac14e94-c871-4cc4-80cd-3d663a727aa9"},
		{"amz-sdk-request", "attempt=1; max=3"},
		{"content-length", fmt.Sprint(size)},
		{"content-type", "application/x-amz-json-1.0"},
		{"host", host},
		{"x-amz-date", now.UTC().Format(dateForm)},
		{"x-amz-target", operation},
		{"x-amzn-query-mode", "true"},
	}
	s := signer{accessKey: "AKIAIOSFODNN7EXAMPLE", secret: credential.Secret, region: "us-east-1", service: "sqs"}
	request := sigv4.Request{
		Method: http.MethodPost, Path: "/", Host: host, Header: http.Header{}, Length: int64(size), Service: "sqs", Exact: true, Default: "us-east-1",
	}
	for _, h := range headers {
		request.Header.Set(h.name, h.value)
	}
	request.Header.Set("Authorization", string(s.authorize(nil, now, http.MethodPost, "/", "", headers, body)))
	verify = func() {
		request.Payload = sha256.Sum256(body)
		if _, failed := v.Verify(&request); failed != nil {
			err = failed
		}
	}
	digest = func() { request.Payload = sha256.Sum256(body) }
	verify()
	return verify, digest, err
}
