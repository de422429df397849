// Package config has the settings of a server, and reads them from files. The struct tags are
// the flags of the command line (package kong's); a file and the environment use the same
// names.
package config

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Version is the version of Godwit.
const Version = "0.1.0-dev"

// Config has all settings of a server. Defaults that differ between development and
// production are variables in the tags.
type Config struct {
	Listen string `default:"127.0.0.1:4566" placeholder:"HOST:PORT" help:"Where to listen (${default})."`
	Data   string `default:"./godwit-data" placeholder:"DIR" help:"Where the state is kept (${default})."`

	Region    string `default:"us-east-1" help:"Region of requests that name none (${default})."`
	Account   string `default:"000000000000" placeholder:"DIGITS" help:"Account of requests that name none: 12 digits (${default})."`
	PublicURL string `name:"public-url" placeholder:"URL" help:"What the links in messages to subscribers begin with; by default the listening address."`

	QueueURLHost string `name:"queue-url-host" placeholder:"NAME" help:"Domain of queue URLs, which are then sqs.REGION.NAME with the port of the request, and of function URLs, ID.lambda-url.REGION.NAME; by default they begin with the request's own host. NAME and all names below it are taken for this server's."`

	AllowedHosts []string `placeholder:"HOST" help:"Names in requests' Host header to take for this server's, besides addresses, localhost, names without a dot or below .localhost, .internal, .svc and .cluster.local, and the host of --public-url; *.NAME stands for the names below it."`
	CORSOrigins  []string `name:"cors-origins" placeholder:"ORIGIN" help:"Origins whose web pages may use this server in a browser, such as http://localhost:3000; none by default."`

	AllowUnsignedGet bool `help:"Take a GET with an Action from another machine without a signature. A web page that somebody looks at there can send one."`

	AllowPrivateEndpoints bool `default:"${private_endpoints}" negatable:"" help:"Deliver to loopback and private addresses (${default}). Link-local ones and the metadata services of clouds are never reached."`

	EndpointCA string `name:"endpoint-ca" placeholder:"FILE" help:"Certificates in PEM form to trust at https endpoints, beside the system's."`

	Jitter     float64 `default:"0.1" placeholder:"SHARE" help:"Share of a retry's delay that is random, 0 to 1 (${default})."`
	JitterSeed uint64  `default:"0" placeholder:"N" help:"Seed of the jitter, to repeat a run; 0 draws one (${default})."`
	Retry429   bool    `name:"retry-429" default:"true" negatable:"" help:"Retry a delivery that was answered with status 429 (${default})."`
	RetryAfter bool    `default:"true" negatable:"" help:"Wait as long as an endpoint asks for with Retry-After, if its message lives that long (${default}). AWS does not."`

	SQSCooldowns bool `name:"sqs-cooldowns" default:"${cooldowns}" negatable:"" help:"As AWS does, wait 60 s between two purges and before a deleted queue's name is free (${default})."`

	SQSFIFORate int `name:"sqs-fifo-rate" default:"0" placeholder:"N" help:"Calls a second of each action on a FIFO queue without high throughput, then RequestThrottled; AWS has 300, 0 is any number (${default})."`

	MaxTopics         int `name:"sns-max-topics" default:"0" placeholder:"N" help:"Topics of an account in a region; 0 is any number (${default})."`
	MaxSubscriptions  int `name:"sns-max-subscriptions" default:"0" placeholder:"N" help:"Confirmed subscriptions of a topic; 0 is any number (${default})."`
	MaxFilterPolicies int `name:"sns-max-filter-policies" default:"0" placeholder:"N" help:"Confirmed subscriptions of a topic with a filter policy; 0 is any number (${default})."`
	MaxReplays        int `name:"sns-max-replays" default:"0" placeholder:"N" help:"Replays of a topic's archive under way at once; 0 is any number (${default})."`
	MaxPublishes      int `name:"sns-max-publishes" default:"0" placeholder:"N" help:"Messages a second that an account publishes in a region; 0 is any number (${default})."`

	MaxAlarms int `name:"cloudwatch-max-alarms" default:"5000" placeholder:"N" help:"Alarms of an account in a region; 0 is any number (${default})."`

	LambdaConcurrency int           `default:"1000" placeholder:"N" help:"Executions of functions of an account in a region at once, 100 of which cannot be reserved (${default})."`
	LambdaCodeStorage int64         `default:"75GiB" type:"bytes" placeholder:"BYTES" help:"Code of all versions of an account's functions in a region (${default}); 0 is any."`
	LambdaUpdateTime  time.Duration `default:"0s" help:"How long a function is being created, and its old code goes on during an update (${default})."`
	LambdaIdle        time.Duration `default:"5m" help:"How long a function's process waits for its next invocation before it is ended (${default})."`

	LambdaCPULimit bool `name:"lambda-cpu-limit" help:"Give functions as much of the processors as their memory gives them at AWS (1,769 MB for one), where control groups can be made; otherwise they have what is free."`

	FunctionNetwork     FunctionNetwork   `default:"${function_network}" enum:"private,public,none" help:"What functions reach beside this server's AWS API: ${enum} (${default}). Never link-local addresses, nor this machine's own."`
	FunctionAllow       []string          `placeholder:"HOST:PORT" sep:"," help:"What functions reach besides, such as localhost:5432; a number for a port, and no link-local or metadata address; may be repeated."`
	FunctionConnections int               `default:"4096" placeholder:"N" help:"Connections of all functions at once, 1 or more, an eighth of them for each environment (${default})."`
	FunctionIsolation   FunctionIsolation `default:"namespaces" enum:"namespaces,none" help:"What functions run in: ${enum}. With none they read and change what the server's user can, and run where there are no namespaces (${default})."`

	FunctionLibraries string `placeholder:"DIR" help:"A directory of libraries that functions can import beside their own: nodejs/node_modules for Node.js, python for Python."`

	FunctionStorage int64 `default:"0" type:"bytes" placeholder:"BYTES" help:"What all functions may have in /tmp together, which is in memory; beyond it the one with most is ended. 0 is a quarter of the memory (${default})."`

	Metrics bool `default:"true" negatable:"" help:"Keep CloudWatch's metrics of queues, topics and functions (${default})."`

	DeliveryHistory     time.Duration `default:"1h" help:"How long a finished delivery stays visible (${default})."`
	EndpointConcurrency int           `default:"50" placeholder:"N" help:"Attempts at once to one endpoint host (${default})."`
	DeliveryConcurrency int           `default:"5000" placeholder:"N" help:"Attempts at once to all endpoints (${default})."`

	Prometheus       bool `default:"true" negatable:"" help:"Answer Prometheus at /metrics (${default})."`
	PrometheusSeries int  `default:"1000" placeholder:"N" help:"Queues, topics, and functions, that have series of their own in /metrics; the rest is other (${default})."`

	LogsMaxBytes int64 `default:"10GiB" type:"bytes" placeholder:"BYTES" help:"About how much log groups keep, before compression; beyond it the oldest events go. 0 is any amount (${default})."`

	MaxConnections           int           `default:"0" placeholder:"N" help:"Connections of clients at once; 0 is as many as the limit of open files allows, up to 16,384 (${default})."`
	MaxConnectionsPerAddress int           `default:"0" placeholder:"N" help:"Connections of one address, other than this machine's and those of trusted proxies; 0 is a quarter of all (${default})."`
	MaxStreams               int           `default:"100" placeholder:"N" help:"Requests of HTTP/2 at once on a connection; in all there are at most as many as --max-connections (${default})."`
	MaxUnreadBytes           int64         `default:"128KiB" type:"bytes" placeholder:"BYTES" help:"Bodies of requests of HTTP/2 on a connection that are there and that nobody has read yet; 64 KiB or more (${default})."`
	TrustedProxies           []string      `placeholder:"ADDRESS" help:"Addresses or networks of proxies, whose connections are not bounded by address."`
	MaxBytesInFlight         int64         `default:"0" type:"bytes" placeholder:"BYTES" help:"Memory of large requests and answers at once, half for each; what does not fit waits, and gets 503. 0 is an eighth of the memory, up to 256 MiB (${default})."`
	MinTransferRate          int64         `default:"4096" type:"bytes" placeholder:"BYTES" help:"Bytes a second that a client must send of a large request, and take of a large answer: 1 or more (${default})."`
	TransferWindow           time.Duration `default:"10s" help:"Over how long that is measured: who stalls for so long loses the connection; 1s or more (${default})."`

	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Serve TLS with this certificate, in PEM form with those that it leads to. The file is read anew when it changes."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"The key of --tls-cert, in PEM form."`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" help:"Take only clients whose certificate one of these has signed, in PEM form."`

	ACMEDomains   []string `name:"acme-domains" placeholder:"NAME" help:"Names of this server, for which certificates are had by ACME, as from Let's Encrypt: it has to be reached from outside at port 443 of each, or at --acme-http."`
	ACMEDirectory string   `name:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" placeholder:"URL" help:"Who is asked for certificates (${default}). To set --acme-domains is to accept the terms of service."`
	ACMEEmail     string   `name:"acme-email" placeholder:"ADDRESS" help:"Whom that tells of troubles with certificates."`
	ACMECache     string   `name:"acme-cache" placeholder:"DIR" help:"Where certificates and their keys are kept, readable by nobody else; by default acme in --data."`
	ACMECA        string   `name:"acme-ca" placeholder:"FILE" help:"Certificates in PEM form to trust at --acme-directory, in place of the system's."`
	ACMEHTTP      string   `name:"acme-http" placeholder:"HOST:PORT" help:"Also prove the names by HTTP, at this address that is reached as port 80."`

	MailRelay        string `placeholder:"URL" help:"The server that takes mails to subscribers: smtp://[USER@]HOST[:PORT], by STARTTLS unless it is on this machine, or smtps://. Without one godwit dev keeps mails in an outbox, and godwit serve takes no subscriptions by mail."`
	MailPasswordFile string `placeholder:"FILE" help:"The password of the user in --mail-relay, readable by its owner only."`
	MailFrom         string `default:"no-reply@godwit.localhost" placeholder:"ADDRESS" help:"The address that mails to subscribers come from (${default})."`
	MailDKIMKey      string `name:"mail-dkim-key" placeholder:"FILE" help:"Sign mails with this key, RSA or Ed25519 in PEM form, for the domain of --mail-from."`
	MailDKIMSelector string `name:"mail-dkim-selector" placeholder:"NAME" help:"The name below _domainkey of that domain which has the public key of --mail-dkim-key."`

	PushAPNsURL        string `name:"push-apns-url" placeholder:"URL" help:"Where messages to endpoints of APNS go: https://api.push.apple.com, which godwit serve sends to without it. Without this and the two that follow godwit dev keeps push messages in an outbox."`
	PushAPNsSandboxURL string `name:"push-apns-sandbox-url" placeholder:"URL" help:"Where those to endpoints of APNS_SANDBOX go, as https://api.sandbox.push.apple.com."`
	PushFCMURL         string `name:"push-fcm-url" placeholder:"URL" help:"Where those to endpoints of GCM go, as https://fcm.googleapis.com."`

	SMS  SMS  `embed:""`
	OIDC OIDC `embed:""`

	FirehoseS3Endpoint    string `name:"firehose-s3-endpoint" placeholder:"URL" help:"The server that has the buckets of delivery streams: http://HOST:PORT or https://HOST. Without one, and without --firehose-directory, streams to buckets are refused."`
	FirehoseS3Region      string `name:"firehose-s3-region" placeholder:"NAME" help:"The region that requests to it are signed for; by default --region."`
	FirehoseS3Credentials string `name:"firehose-s3-credentials" placeholder:"FILE" help:"The access key that requests to it are signed with, and its secret on a second line, readable by its owner only; by default they are not signed."`
	FirehoseS3HostStyle   bool   `name:"firehose-s3-host-style" help:"Name buckets in the host of requests to it, and not in the path."`
	FirehoseDirectory     string `placeholder:"DIR" help:"Keep the objects of delivery streams there, as DIR/BUCKET/KEY, and not in S3; by default godwit dev keeps them in firehose in --data."`
	FirehoseMaxStreams    int    `default:"5000" placeholder:"N" help:"Delivery streams of an account in a region; 0 is any number (${default})."`
	FirehoseMaxBuffer     int64  `default:"1GiB" type:"bytes" placeholder:"BYTES" help:"How much a delivery stream holds until it is delivered; beyond it puts are throttled (${default})."`

	AdminListen string `placeholder:"HOST:PORT" help:"Answer /_godwit/ and /metrics there, without a signature, and not at --listen: for an address that only operators reach. Health and readiness are answered at both."`

	IngestListen string `placeholder:"HOST:PORT" help:"Take posts to sources there, at /in/NAME, by TLS where --listen has it: for webhooks of providers, and clients that know nothing of AWS. Without it sources take nothing."`

	AuditLog        string `name:"audit-log" placeholder:"FILE" help:"Append a line of JSON for each call that manages something, also a refused one, with who made it, in the form of CloudTrail's records."`
	AuditMaxBytes   int64  `default:"0" type:"bytes" placeholder:"BYTES" help:"Put --audit-log away as FILE.1 before it is larger than this; 0 leaves that to others, as logrotate (${default})."`
	AuditKeep       int    `default:"10" placeholder:"FILES" help:"How many files are kept of those that --audit-max-bytes has had put away, the latest (${default})."`
	AuditLogGroup   string `name:"audit-log-group" placeholder:"NAME" help:"Have these lines in a log group of --account, too."`
	AuditDataEvents bool   `name:"audit-data-events" help:"Have lines for what is done to messages, invocations, log events, metrics and records of delivery streams, too."`

	LogLevel  LogLevel  `default:"${log_level}" enum:"debug,info,warn,error" help:"Least level that is logged: ${enum} (${default})."`
	LogFormat LogFormat `default:"text" enum:"text,json" help:"Form of the log on standard error: ${enum} (${default})."`
	Pprof     string    `placeholder:"HOST:PORT" help:"Serve profiles of the running process there; off by default."`

	Traces Traces `embed:""`

	Accounts Accounts `embed:""`

	Artifacts Artifacts `embed:""`

	Backup Backup `embed:""`

	Resources string `placeholder:"FILE" help:"Have the queues, topics, subscriptions and alarms of this file, as godwit export writes it, once the server has started; what is there and the same is left alone."`

	AcceptDataLoss bool `help:"Start although the write-ahead log lacks writes that were acknowledged, once, after a start was refused because of that."`

	// In production these two are fixed, so they are no common flags.

	Clock ClockKind `kong:"-"`
	Store StoreKind `kong:"-"`

	// These are no common flags, either: each mode has its own flags for them.

	// Production says that the mode is godwit serve.
	Production bool `kong:"-"`
	// Enforce verifies signatures and evaluates policies. Production always does.
	Enforce bool `kong:"-"`
	// Root is the access key of the account's root. It has no flags, because other users of
	// the machine can read those.
	Root Root `kong:"-"`
	// Drawn says that Root was generated for this run, and must be shown to the user.
	Drawn bool `kong:"-"`
	// Shared is the directory of DevFiles that the nodes of godwit dev --nodes share; empty: Data.
	Shared string `kong:"-"`
	// Live are the settings that can change while the server runs; nil: none.
	Live *Live `kong:"-"`
	// RootKey is the file of the key that encrypts the data's keys. Empty: one that
	// development creates in Data.
	RootKey string `kong:"-"`
	// RootAccessKey is the file of Root; empty: none.
	RootAccessKey string `kong:"-"`
	// AllowPlainHTTP allows requests without TLS on addresses that others can reach.
	AllowPlainHTTP bool `kong:"-"`
}

// Root is an access key. Formatting and logging hide its secret.
type Root struct{ AccessKeyID, Secret string }

// String hides the secret.
func (r Root) String() string { return r.AccessKeyID }

// GoString hides the secret.
func (r Root) GoString() string { return r.AccessKeyID }

// LogValue hides the secret.
func (r Root) LogValue() slog.Value { return slog.StringValue(r.AccessKeyID) }

// The environment variables of Root.
const (
	RootKeyVariable    = "GODWIT_ROOT_ACCESS_KEY_ID"
	RootSecretVariable = "GODWIT_ROOT_SECRET_ACCESS_KEY"
)

// ClockKind selects the server's clock.
type ClockKind string

// The clocks.
const (
	SystemClock  ClockKind = "system"  // the machine's
	VirtualClock ClockKind = "virtual" // only advanced by POST /_godwit/clock
)

// StoreKind selects the store.
type StoreKind string

// The stores.
const (
	PebbleStore StoreKind = "pebble" // on disk, in Config.Data
	MemoryStore StoreKind = "memory" // lost when the process ends
)

// FunctionNetwork is what functions can reach.
type FunctionNetwork string

// FunctionIsolation isolates functions from the machine and from each other.
type FunctionIsolation string

// The kinds of isolation. Empty means IsolationNamespaces.
const (
	IsolationNamespaces FunctionIsolation = "namespaces" // without them functions do not run
	IsolationNone       FunctionIsolation = "none"
)

// LogLevel is the minimum level of the log.
type LogLevel string

// LogFormat is the format of the log.
type LogFormat string

// The formats of the log.
const (
	TextLog LogFormat = "text" // key=value
	JSONLog LogFormat = "json" // one object a line
)

// checkFunc notes a problem with a flag unless the setting is ok.
type checkFunc func(ok bool, flag, format string, args ...any)

// Check validates the settings: it returns all problems, each with the name of the flag.
func (c *Config) Check() error {
	var problems []error
	check := func(ok bool, flag, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
		}
	}
	check(c.Clock == SystemClock || c.Clock == VirtualClock, "clock", "want system or virtual, have %q", c.Clock)
	check(c.Store == PebbleStore || c.Store == MemoryStore, "store", "want pebble or memory, have %q", c.Store)
	_, _, err := net.SplitHostPort(c.Listen)
	check(err == nil, "listen", "want HOST:PORT, have %q", c.Listen)
	if c.Pprof != "" {
		_, _, err = net.SplitHostPort(c.Pprof)
		check(err == nil, "pprof", "want HOST:PORT, have %q", c.Pprof)
	}
	for flag, address := range sorted(map[string]string{"admin-listen": c.AdminListen, "acme-http": c.ACMEHTTP, "ingest-listen": c.IngestListen}) {
		_, _, err = net.SplitHostPort(address)
		check(address == "" || err == nil, flag, "want HOST:PORT, have %q", address)
	}
	c.checkTLS(check)
	c.checkMail(check)
	c.SMS.check(check)
	c.OIDC.check(check, (c.Production || c.Enforce) && c.AdminListen == "")
	c.checkFirehose(check)
	check((c.Root.AccessKeyID == "") == (c.Root.Secret == ""), "enforce", "%s and %s go together", RootKeyVariable, RootSecretVariable)
	check(c.Data != "" || c.Store == MemoryStore, "data", "want a directory")
	check(isRegion(c.Region), "region", "want the name of a region, such as us-east-1, have %q%s", c.Region, DidYouMean(strings.ToLower(c.Region), regions))
	check(arn.IsAccount(c.Account), "account", "want 12 digits, have %q", c.Account)
	c.checkHosts(check)
	check(c.Jitter >= 0 && c.Jitter <= 1, "jitter", "want a number from 0 to 1, have %v", c.Jitter)
	check(c.SQSFIFORate >= 0, "sqs-fifo-rate", "want 0 or more, have %d", c.SQSFIFORate)
	check(c.DeliveryHistory >= 0, "delivery-history", "want a duration of 0 or more, have %s", c.DeliveryHistory)
	c.Accounts.check(check)
	c.Artifacts.check(check)
	c.Backup.check(check, c.Store)
	c.checkPush(check)
	c.checkTraces(check)
	for flag, n := range sorted(map[string]int{
		"sns-max-topics": c.MaxTopics, "sns-max-subscriptions": c.MaxSubscriptions, "sns-max-filter-policies": c.MaxFilterPolicies,
		"sns-max-replays": c.MaxReplays, "sns-max-publishes": c.MaxPublishes, "cloudwatch-max-alarms": c.MaxAlarms,
	}) {
		check(n >= 0, flag, "want 0 or more, have %d", n)
	}
	check(c.PrometheusSeries >= 0, "prometheus-series", "want 0 or more, have %d", c.PrometheusSeries)
	check(c.AuditMaxBytes == 0 || c.AuditMaxBytes >= 4<<10, "audit-max-bytes", "want 0, or 4KiB or more, have %d bytes", c.AuditMaxBytes)
	check(!c.AuditDataEvents || c.AuditLog != "" || c.AuditLogGroup != "", "audit-data-events", "want --audit-log or --audit-log-group, too: without them nothing is recorded")
	check(c.AuditLogGroup == "" || arn.ValidLogGroupName(c.AuditLogGroup), "audit-log-group", "want the name of a log group, of up to 512 letters, digits and . - _ / #, have %q", c.AuditLogGroup)
	check(c.AuditKeep >= 0, "audit-keep", "want 0 or more, have %d", c.AuditKeep)
	check(c.LogsMaxBytes >= 0, "logs-max-bytes", "want 0 or more, have %d", c.LogsMaxBytes)
	c.checkConnections(check)
	c.checkFunctions(check)
	check(c.EndpointConcurrency >= 1, "endpoint-concurrency", "want 1 or more, have %d", c.EndpointConcurrency)
	check(c.DeliveryConcurrency >= 1, "delivery-concurrency", "want 1 or more, have %d", c.DeliveryConcurrency)
	return errors.Join(problems...)
}

// checkHosts checks the names of hosts, and the origins of web pages.
func (c *Config) checkHosts(check checkFunc) {
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" && u.Fragment == "",
			"public-url", "want http://… or https://…, and no query, have %q", c.PublicURL)
	}
	check(c.QueueURLHost == "" || isHostPattern(c.QueueURLHost) && !strings.HasPrefix(c.QueueURLHost, "*") && net.ParseIP(c.QueueURLHost) == nil,
		"queue-url-host", "want the name of a host, without scheme and port, have %q", c.QueueURLHost)
	for _, host := range c.AllowedHosts {
		check(isHostPattern(host), "allowed-hosts", "want the name of a host, or *.NAME for all names below it, without scheme and port, have %q", host)
	}
	for _, origin := range c.CORSOrigins {
		check(origin != "*" && origin != "null", "cors-origins",
			"%q would let every web page run code here: name the origins, such as http://localhost:3000", origin)
		check(origin == "*" || origin == "null" || isOrigin(origin), "cors-origins", "want scheme://host or scheme://host:port and nothing behind it, have %q", origin)
	}
}

// checkConnections checks the bounds of clients' connections and requests.
func (c *Config) checkConnections(check checkFunc) {
	check(c.MaxConnections >= 0, "max-connections", "want 0 or more, have %d", c.MaxConnections)
	check(c.MaxConnectionsPerAddress >= 0, "max-connections-per-address", "want 0 or more, have %d", c.MaxConnectionsPerAddress)
	check(c.MaxStreams >= 0, "max-streams", "want 1 or more, have %d", c.MaxStreams)
	check(c.MaxUnreadBytes == 0 || c.MaxUnreadBytes >= 64<<10, "max-unread-bytes", "want 64KiB or more, have %d", c.MaxUnreadBytes)
	check(c.MaxBytesInFlight == 0 || c.MaxBytesInFlight >= 16<<20, "max-bytes-in-flight", "want 0, or 16MiB or more, have %d bytes", c.MaxBytesInFlight)
	check(c.MinTransferRate >= 0, "min-transfer-rate", "want 1 or more, have %d", c.MinTransferRate)
	check(c.TransferWindow == 0 || c.TransferWindow >= time.Second, "transfer-window", "want 1s or more, have %s", c.TransferWindow)
	for _, p := range c.TrustedProxies {
		_, err := Network(p)
		check(err == nil, "trusted-proxies", "want addresses such as 10.0.0.1, or networks such as 10.0.0.0/8, have %q", p)
	}
}

// checkFunctions checks the settings of Lambda's functions.
func (c *Config) checkFunctions(check checkFunc) {
	check(c.LambdaConcurrency == 0 || c.LambdaConcurrency >= 100, "lambda-concurrency", "want 100 or more, have %d", c.LambdaConcurrency)
	check(c.LambdaCodeStorage >= 0, "lambda-code-storage", "want 0 or more, have %d", c.LambdaCodeStorage)
	check(c.LambdaIdle >= 0, "lambda-idle", "want a duration above 0s, have %s", c.LambdaIdle)
	check(c.LambdaUpdateTime >= 0, "lambda-update-time", "want a duration of 0 or more, have %s", c.LambdaUpdateTime)
	for _, entry := range c.FunctionAllow {
		host, port, err := ParseAllow(entry)
		check(err == nil, "function-allow", "%v", err)
		for flag, address := range sorted(map[string]string{"pprof": c.Pprof, "admin-listen": c.AdminListen}) {
			own, number, _ := net.SplitHostPort(address)
			check(err != nil || strconv.Itoa(int(port)) != number || host != own && host != "localhost" && !net.ParseIP(host).IsLoopback(), "function-allow",
				"functions do not reach --%s at %s", flag, entry)
		}
	}
	check(c.FunctionConnections >= 0, "function-connections", "want 1 or more, have %d", c.FunctionConnections)
	check(c.FunctionStorage >= 0, "function-storage", "want 0 or more, have %d", c.FunctionStorage)
}

// sorted is a map in the order of its keys, so that problems are always reported in the same order.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// CheckFlags is Check for explicit settings: it refuses zeros that mean the default in a
// Config, but would be taken for "none".
func (c *Config) CheckFlags() error {
	problems := []error{c.Check()}
	for _, z := range [...]struct {
		zero bool
		text string
	}{
		{c.FunctionConnections == 0, "--function-connections: want 1 or more, have 0; --function-network=none has functions reach nothing"},
		{c.MinTransferRate == 0, "--min-transfer-rate: want 1 or more, have 0"},
		{c.TransferWindow == 0, "--transfer-window: want 1s or more, have 0s"},
		{c.MaxStreams == 0, "--max-streams: want 1 or more, have 0"},
		{c.MaxUnreadBytes == 0, "--max-unread-bytes: want 64KiB or more, have 0"},
		{c.LambdaConcurrency == 0, "--lambda-concurrency: want 100 or more, have 0"},
		{c.LambdaIdle == 0, "--lambda-idle: want a duration above 0s, such as 1s"},
		{c.SMS.Window == 0, "--sms-window: want 1 to 1000, have 0"},
	} {
		if z.zero {
			problems = append(problems, errors.New(z.text))
		}
	}
	return errors.Join(problems...)
}

// Network parses an address, or a network as address/bits.
func Network(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// isHostPattern reports whether s is the name of a host, or *. and one.
func isHostPattern(s string) bool {
	s = strings.TrimPrefix(s, "*.")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || label == "" {
			return false
		}
	}
	return true
}

// isOrigin reports whether s is an origin, in the form of browsers.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && strings.EqualFold(u.Scheme+"://"+u.Host, s) &&
		(isHostPattern(u.Hostname()) || net.ParseIP(u.Hostname()) != nil) && !strings.HasPrefix(u.Host, "*")
}

// CheckAccount refuses an invalid account number.
func CheckAccount(s string) error {
	if !arn.IsAccount(s) {
		return fmt.Errorf("--account: want 12 digits, have %q", s)
	}
	return nil
}
