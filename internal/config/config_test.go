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

// oidc changes settings that have a provider of the console.
func oidc(change func(*config.Config)) func(*config.Config) {
	return func(c *config.Config) {
		c.Enforce = true
		c.OIDC = config.OIDC{Issuer: "https://id.example.com/realms/ops", Client: "godwit", Scopes: []string{"openid"}, Roles: []string{"groups=a=b=operators"}}
		change(c)
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
		{"a provider of the console", oidc(func(*config.Config) {}), nil},
		{"a provider on this machine", oidc(func(c *config.Config) { c.OIDC.Issuer = "http://127.0.0.1:9000" }), nil},
		{"a provider without TLS", oidc(func(c *config.Config) { c.OIDC.Issuer = "http://id.example.com" }), []string{"--console-oidc-issuer"}},
		{"a provider with credentials", oidc(func(c *config.Config) { c.OIDC.Issuer = "https://a:b@id.example.com" }), []string{"--console-oidc-issuer"}},
		{"a provider where nobody signs in", oidc(func(c *config.Config) { c.Enforce = false }), []string{"--console-oidc-issuer"}},
		{"a provider beside an address without a sign-in", oidc(func(c *config.Config) { c.AdminListen = "127.0.0.1:4567" }), []string{"--console-oidc-issuer"}},
		{"a provider without a client", oidc(func(c *config.Config) { c.OIDC.Client = "" }), []string{"--console-oidc-client"}},
		{"a provider without roles", oidc(func(c *config.Config) { c.OIDC.Roles = nil }), []string{"--console-oidc-roles"}},
		{"roles that are none", oidc(func(c *config.Config) { c.OIDC.Roles = []string{"groups=sre"} }), []string{"--console-oidc-roles"}},
		{"roles by path", oidc(func(c *config.Config) { c.OIDC.Roles = []string{"groups=sre=team/operators"} }), []string{"--console-oidc-roles"}},
		{"a client without a provider", func(c *config.Config) { c.OIDC.Client = "godwit" }, []string{"--console-oidc-issuer"}},
		{"no directory", func(c *config.Config) { c.Data = "" }, []string{"--data"}},
		{"no region", func(c *config.Config) { c.Region = "" }, []string{"--region"}},
		{"a region of nobody's", func(c *config.Config) { c.Region = "of-mine-7" }, nil},
		{"a region in capitals", func(c *config.Config) { c.Region = "US-EAST-1" }, []string{"--region"}},
		{"a region with a dot", func(c *config.Config) { c.Region = "us.east" }, []string{"--region"}},
		{"a region and a space", func(c *config.Config) { c.Region = "us-east-1 " }, []string{"--region"}},
		{"a zone's end", func(c *config.Config) { c.Region = "us-east-" }, []string{"--region"}},
		{"short account", func(c *config.Config) { c.Account = "12345678901" }, []string{"--account"}},
		{"account with letters", func(c *config.Config) { c.Account = "12345678901x" }, []string{"--account"}},
		{"public URL without a host", func(c *config.Config) { c.PublicURL = "http://" }, []string{"--public-url"}},
		{"public URL of another scheme", func(c *config.Config) { c.PublicURL = "ftp://host" }, []string{"--public-url"}},
		{"names and origins", func(c *config.Config) {
			c.AllowedHosts = []string{"godwit.example.com", "*.Preview.example.com", "a_b", "10.0.0.1", "absolute.example."}
			c.CORSOrigins = []string{"http://localhost:3000", "https://App.example", "http://[::1]:80", "http://127.0.0.1", "chrome-extension://abc"}
		}, nil},
		{"a host with a port", func(c *config.Config) { c.AllowedHosts = []string{"godwit.example.com:4566"} }, []string{"--allowed-hosts"}},
		{"a host with a scheme", func(c *config.Config) { c.AllowedHosts = []string{"http://godwit.example.com"} }, []string{"--allowed-hosts"}},
		{"any host", func(c *config.Config) { c.AllowedHosts = []string{"*"} }, []string{"--allowed-hosts"}},
		{"an empty host", func(c *config.Config) { c.AllowedHosts = []string{"a", ""} }, []string{"--allowed-hosts"}},
		{"a star within a host", func(c *config.Config) { c.AllowedHosts = []string{"a.*.example"} }, []string{"--allowed-hosts"}},
		{"any origin", func(c *config.Config) { c.CORSOrigins = []string{"*"} }, []string{"--cors-origins"}},
		{"the origin null", func(c *config.Config) { c.CORSOrigins = []string{"null"} }, []string{"--cors-origins"}},
		{"an origin with a path", func(c *config.Config) { c.CORSOrigins = []string{"http://localhost:3000/"} }, []string{"--cors-origins"}},
		{"an origin without a scheme", func(c *config.Config) { c.CORSOrigins = []string{"localhost:3000"} }, []string{"--cors-origins"}},
		{"an origin with a user", func(c *config.Config) { c.CORSOrigins = []string{"http://a@b"} }, []string{"--cors-origins"}},
		{"an origin with a star", func(c *config.Config) { c.CORSOrigins = []string{"http://*.example.com"} }, []string{"--cors-origins"}},
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
		{"negative storage of functions", func(c *config.Config) { c.FunctionStorage = -1 }, []string{"--function-storage"}},
		{"limits of HTTP/2", func(c *config.Config) { c.MaxStreams, c.MaxUnreadBytes = -1, 1<<16-1 }, []string{"--max-streams", "--max-unread-bytes"}},
		{"negative limits", func(c *config.Config) { c.FunctionConnections, c.MinTransferRate, c.TransferWindow = -1, -1, -1 }, []string{
			"--function-connections", "--min-transfer-rate", "--transfer-window",
		}},
		{"what functions may reach", func(c *config.Config) {
			c.FunctionAllow = []string{"localhost:5432", "db.example:1", "[::1]:80", "10.0.0.1:65535"}
		}, nil},
		{"functions and a port of none", func(c *config.Config) { c.FunctionAllow = []string{"db:0"} }, []string{"--function-allow"}},
		{"functions and a large port", func(c *config.Config) { c.FunctionAllow = []string{"db:65536"} }, []string{"--function-allow"}},
		{"functions and a port's name", func(c *config.Config) { c.FunctionAllow = []string{"db:postgres"} }, []string{"--function-allow"}},
		{"functions and a port alone", func(c *config.Config) { c.FunctionAllow = []string{":5432"} }, []string{"--function-allow"}},
		{"functions and metadata", func(c *config.Config) { c.FunctionAllow = []string{"169.254.169.254:80"} }, []string{"--function-allow"}},
		{"functions and any address", func(c *config.Config) { c.FunctionAllow = []string{"0.0.0.0:80"} }, []string{"--function-allow"}},
		{"an audit log's size without a unit", func(c *config.Config) { c.AuditLog, c.AuditMaxBytes = "a", 100 }, []string{"--audit-max-bytes"}},
		{"data events of no audit log", func(c *config.Config) { c.AuditDataEvents = true }, []string{"--audit-data-events"}},
		{"data events of a log group", func(c *config.Config) { c.AuditDataEvents, c.AuditLogGroup = true, "/audit" }, nil},
		{"a log group and a space", func(c *config.Config) { c.AuditLogGroup = "a b" }, []string{"--audit-log-group"}},
		{"public URL with a query", func(c *config.Config) { c.PublicURL = "http://host/?a" }, []string{"--public-url"}},
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

// TestOrderOfProblems: the same settings are refused in the same words each time.
func TestOrderOfProblems(t *testing.T) {
	c := valid()
	c.AdminListen, c.ACMEHTTP, c.IngestListen = "a", "b", "c"
	c.MaxTopics, c.MaxSubscriptions, c.MaxFilterPolicies, c.MaxReplays, c.MaxPublishes, c.MaxAlarms = -1, -1, -1, -1, -1, -1
	first := c.Check().Error()
	for range 50 {
		if again := c.Check().Error(); again != first {
			t.Fatalf("%s\nafter\n%s", again, first)
		}
	}
}

func TestFunctionAllowWithoutAPortIsOneProblem(t *testing.T) {
	c := valid()
	c.FunctionAllow = []string{"db"}
	err := c.Check()
	if err == nil || !strings.Contains(err.Error(), "want HOST:PORT") || strings.Contains(err.Error(), "--pprof") {
		t.Error(err)
	}
}

// A region that AWS does not have is taken, and told with the one that may be meant.
func TestWarnings(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1": "", "eu-central-2": "", "us-gov-west-1": "",
		"us-est-1":    `--region: AWS has no region "us-est-1" (did you mean us-east-1?); requests`,
		"us-east-1a":  "did you mean us-east-1?",
		"eu-cental-1": "did you mean eu-central-1?",
		"local":       `--region: AWS has no region "local"; requests`,
	} {
		c := valid()
		c.Region = region
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", region, err)
		}
		got := strings.Join(c.Warnings(), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", region, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"check", "dev", "salvage", "policy", "GODWIT_LISTEN"}
	for name, want := range map[string]string{
		"chekc": "check", "check": "check", "salvag": "salvage", "polizy": "policy", "GODWIT_LISSTEN": "GODWIT_LISTEN", "GODWIT_LITSNE": "GODWIT_LISTEN",
		"x": "", "": "", "dve": "dev", "bake": "",
	} {
		if got := config.Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
