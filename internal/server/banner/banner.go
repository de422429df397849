// Package banner prints for a person at a terminal that the server is ready, its addresses, and
// commands to try.
package banner

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
)

// Facts are the facts about a started server that are not in the settings.
type Facts struct {
	Config  config.Config
	Address string        // where it listens
	Took    time.Duration // from the start until it was ready
	Warning string        // of the machine's limits; may be empty
	Notices []string      // lines of the parts
}

// Write writes the facts, and commands to paste.
func Write(w io.Writer, f Facts) {
	url := Reachable(f.Config.TLS(), f.Address)
	var b strings.Builder
	fmt.Fprintf(&b, "Godwit %s is ready on %s (%s).\n", config.Version, url, f.Took.Round(time.Millisecond))
	fmt.Fprintf(&b, "Data:    %s\n", dataPlace(f.Config))
	if f.Warning != "" {
		fmt.Fprintf(&b, "Note:    %s\n", f.Warning)
	}
	if f.Config.Clock == config.VirtualClock {
		fmt.Fprintf(&b, "Clock:   stands still; curl -d '{\"advance\":\"1h\"}' %s/_godwit/v1/clock moves it\n", url)
	}
	if f.Config.AdminListen == "" {
		fmt.Fprintf(&b, "Console: %s/_godwit/ui/\n", url)
	}
	if f.Config.Enforce {
		enforcing(&b, f.Config, url)
	} else {
		tryThis(&b, f.Config, url)
	}
	for _, notice := range f.Notices {
		fmt.Fprintln(&b, notice)
	}
	_, _ = io.WriteString(w, b.String()) // a closed terminal is no reason to stop
}

// enforcing says which key requests need.
func enforcing(b *strings.Builder, cfg config.Config, url string) {
	fmt.Fprintf(b, "Callers: every request is to be signed, and may do what policies allow; the root user's access key is %s\n", cfg.Root.AccessKeyID)
	if cfg.Drawn {
		fmt.Fprintf(b, "AWS CLI: export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n",
			url, cfg.Region, cfg.Root.AccessKeyID, cfg.Root.Secret)
	}
}

// tryThis has commands that work without a key.
func tryThis(b *strings.Builder, cfg config.Config, url string) {
	fmt.Fprintf(b, "AWS CLI: export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n",
		url, cfg.Region)
	queue := fmt.Sprintf("%s/%s/hello", url, cfg.Account)
	// Version 1 of the CLI ignores AWS_ENDPOINT_URL for SQS; the option always works.
	fmt.Fprintf(b, "Try:     aws --endpoint-url %s sqs create-queue --queue-name hello\n", url)
	fmt.Fprintf(b, "         aws --endpoint-url %s sqs send-message --queue-url %s --message-body hi\n", url, queue)
	fmt.Fprintf(b, "         aws --endpoint-url %s sqs receive-message --queue-url %s\n", url, queue)
}

func dataPlace(cfg config.Config) string {
	if cfg.Store == config.MemoryStore {
		return "in memory, gone when the server ends"
	}
	place := cfg.Data
	if abs, err := filepath.Abs(place); err == nil {
		place = abs
	}
	if cfg.RootKey == "" {
		place += " (sealed with " + bootstrap.DevRootKey + " in it, which protects nothing)"
	}
	return place
}

// Reachable is the URL of a listening address for a client on this machine: "all interfaces" is
// no address to connect to.
func Reachable(secure bool, address string) string {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return scheme + address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}
