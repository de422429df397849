package config_test

import (
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
)

func valid() config.Config {
	return config.Config{
		Listen: "127.0.0.1:4566", Data: "./godwit-data", Region: "us-east-1", Account: "000000000000",
		Jitter: 0.1, DeliveryHistory: time.Hour, EndpointConcurrency: 50, DeliveryConcurrency: 5000,
		Clock: config.SystemClock, Store: config.PebbleStore,
	}
}

func TestConfigCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(*config.Config)
		want   []string // parts of the error; none: valid
	}{
		{"defaults", func(*config.Config) {}, nil},
		{"any port", func(c *config.Config) { c.Listen = ":0" }, nil},
		{"memory needs no directory", func(c *config.Config) { c.Store, c.Data = config.MemoryStore, "" }, nil},
		{"bounds of jitter", func(c *config.Config) { c.Jitter = 1 }, nil},
		{"listen without a port", func(c *config.Config) { c.Listen = "localhost" }, []string{"--listen"}},
		{"no directory", func(c *config.Config) { c.Data = "" }, []string{"--data"}},
		{"no region", func(c *config.Config) { c.Region = "" }, []string{"--region"}},
		{"short account", func(c *config.Config) { c.Account = "12345678901" }, []string{"--account"}},
		{"account with letters", func(c *config.Config) { c.Account = "12345678901x" }, []string{"--account"}},
		{"public URL without a host", func(c *config.Config) { c.PublicURL = "http://" }, []string{"--public-url"}},
		{"public URL of another scheme", func(c *config.Config) { c.PublicURL = "ftp://host" }, []string{"--public-url"}},
		{"jitter above 1", func(c *config.Config) { c.Jitter = 1.01 }, []string{"--jitter"}},
		{"jitter below 0", func(c *config.Config) { c.Jitter = -0.01 }, []string{"--jitter"}},
		{"negative history", func(c *config.Config) { c.DeliveryHistory = -1 }, []string{"--delivery-history"}},
		{"negative quotas", func(c *config.Config) {
			c.MaxTopics, c.MaxSubscriptions, c.MaxFilterPolicies, c.MaxReplays, c.MaxPublishes = -1, -1, -1, -1, -1
		}, []string{
			"--sns-max-topics", "--sns-max-subscriptions", "--sns-max-filter-policies", "--sns-max-replays", "--sns-max-publishes",
		}},
		{"negative rate", func(c *config.Config) { c.SQSFIFORate = -1 }, []string{"--sqs-fifo-rate"}},
		{"pprof without a port", func(c *config.Config) { c.Pprof = "x" }, []string{"--pprof"}},
		{"unknown clock", func(c *config.Config) { c.Clock = "" }, []string{"--clock"}},
		{"unknown store", func(c *config.Config) { c.Store = "sqlite" }, []string{"--store"}},
		{
			"two problems are both told",
			func(c *config.Config) { c.EndpointConcurrency, c.DeliveryConcurrency = 0, 0 },
			[]string{"--endpoint-concurrency", "--delivery-concurrency"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			tt.change(&c)
			err := c.Check()
			if len(tt.want) == 0 {
				if err != nil {
					t.Errorf("Check: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("Check found nothing")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part+":") {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
		})
	}
}
