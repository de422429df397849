package operate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Doctor checks a server, and reports problems that need a person.
type Doctor struct {
	Connection
}

// errSick is the error of a doctor that has found a critical problem, for scripts.
var errSick = errors.New("something needs a person now")

// The results of a check.
const (
	fine     = "ok"
	warning  = "warning"
	critical = "critical"
	unknown  = "unknown"
)

// The thresholds of checks.
const (
	clockWarns, clockHurts = 30 * time.Second, 5 * time.Minute // requests are refused from 15 minutes on
	certWarns, certHurts   = 21 * 24 * time.Hour, 7 * 24 * time.Hour
	limitWarns             = 0.8 // of it is used
)

// Run prints the checks, and the problems that need a person.
func (d *Doctor) Run(s Streams) error {
	sick := false
	err := d.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		answer := object{}
		if err := api.get(ctx, "overview", nil, &answer); err != nil {
			return nil, nil, err
		}
		checks := examine(ctx, api, answer, clock.System.Now())
		rows, _ := answer["attention"].([]any)
		answer["checks"] = checks
		sick = slices.ContainsFunc(append(slices.Clone(checks), rows...), func(row any) bool {
			of, _ := row.(object)
			return of["severity"] == critical || of["state"] == critical
		})
		return answer, func(w io.Writer, _ any) error { return diagnosed(w, checks, rows) }, nil
	})
	if err == nil && sick {
		return errSick
	}
	return err
}

// diagnosed prints the results.
func diagnosed(w io.Writer, checks, rows []any) error {
	what := member("WHAT", "text")
	what.whole = true
	if err := table(w, []column{member("CHECK", "check"), member("STATE", "state"), what}, checks); err != nil {
		return err
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "\nNothing needs a person.")
		return err
	}
	fmt.Fprintln(w)
	if err := table(w, []column{member("SEVERITY", "severity"), member("KIND", "kind"), member("RESOURCE", "arn"), what}, rows); err != nil {
		return err
	}
	return nextCommands(w, rows)
}

// nextOf are the commands that come next, by the kind of a problem. What has none says itself what
// is to be done.
var nextOf = map[string]string{
	"failing-endpoint": "deliveries ARN", "dead-letters": "dlq show ARN", "paused": "subscriptions resume ARN", "old-backlog": "queues ARN",
	"pending-confirmation": "subscriptions --state pending-confirmation", "source": "sources",
}

// nextCommands prints the command that comes next about each problem, in a form for a shell.
func nextCommands(w io.Writer, rows []any) error {
	said := map[string]bool{"": true}
	for _, row := range rows {
		of, _ := row.(object)
		arn := written(of["arn"])
		if !plainWord(arn) { // only a server that means harm has others
			continue
		}
		command := strings.ReplaceAll(nextOf[written(of["kind"])], "ARN", arn)
		if said[command] {
			continue
		}
		if len(said) == 1 {
			fmt.Fprintln(w, "\nWhat comes next:")
		}
		said[command] = true
		if _, err := fmt.Fprintln(w, "  godwit "+command); err != nil {
			return err
		}
	}
	return nil
}

// examine checks the information of a server. Missing information is unknown, and no failure:
// not every caller has permission for everything.
func examine(ctx context.Context, api *client, overview object, now time.Time) (checks []any) {
	add := func(name, state, text string) {
		checks = append(checks, object{"check": name, "state": state, "text": text})
	}
	server, _ := overview["server"].(object)
	add("server", fine, strings.TrimSpace("godwit "+written(server["version"])+" "+written(server["mode"])))
	if text, ok := server["now"].(string); ok && server["clock"] == "system" {
		state, what := clockCheck(text, now)
		add("clock", state, what)
	}
	var delivering struct{ Held bool }
	if err := api.get(ctx, "delivering", nil, &delivering); err == nil && delivering.Held {
		add("deliveries", warning, "nothing is delivered, as the data was restored with --paused, until: godwit deliveries begin")
	}
	if !api.expires.IsZero() {
		state, what := certificateCheck(api.expires, now)
		add("certificate", state, what)
	}
	state, what := portsCheck(ctx, api)
	add("ports", state, what)
	text, err := api.text(ctx, "/metrics")
	if err != nil {
		add("disk", unknown, "the metrics cannot be read: "+err.Error())
		return checks
	}
	samples := parseSamples(text)
	if _, ok := samples["godwit_disk_low"]; ok {
		state, what = diskCheck(samples)
	} else {
		state, what = disksCheck(ctx, api)
	}
	add("disk", state, what)
	state, what = limitsCheck(samples)
	add("limits", state, what)
	return checks
}

// clockCheck compares the server's clock with this machine's.
func clockCheck(text string, now time.Time) (state, what string) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return unknown, "the server's time cannot be read"
	}
	off := at.Sub(now).Abs().Round(time.Second)
	switch {
	case off > clockHurts:
		return critical, fmt.Sprintf("it is %s off this machine's: signatures are refused that are off by more than 15 minutes. Have both take the time from the network", off)
	case off > clockWarns:
		return warning, fmt.Sprintf("it is %s off this machine's. Have both take the time from the network", off)
	}
	return fine, "it agrees with this machine's"
}

func certificateCheck(expires, now time.Time) (state, what string) {
	left := expires.Sub(now)
	what = "the certificate expires at " + expires.UTC().Format(time.RFC3339)
	switch {
	case left < certHurts:
		return critical, what + ": renew it now (--tls-cert is read anew when it changes)"
	case left < certWarns:
		return warning, what + ": was it to be renewed by now?"
	}
	return fine, what
}

// portsCheck reports the server's addresses.
func portsCheck(ctx context.Context, api *client) (state, what string) {
	var answer struct {
		Settings []struct{ Name, Value string }
	}
	if err := api.get(ctx, "settings", nil, &answer); err != nil {
		return unknown, "the settings cannot be read: " + err.Error()
	}
	var all []string
	for _, one := range answer.Settings {
		if (one.Name == "listen" || one.Name == "pprof" || strings.HasSuffix(one.Name, "-listen")) && one.Value != "" {
			all = append(all, one.Name+" "+one.Value)
		}
	}
	slices.Sort(all)
	return fine, strings.Join(all, ", ")
}

// parseSamples parses metrics for Prometheus: by metric, and those of limits by their label.
func parseSamples(text []byte) map[string]float64 {
	samples := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			samples[name] = n
		}
	}
	return samples
}

func diskCheck(samples map[string]float64) (state, what string) {
	size := samples["godwit_store_disk_bytes"] / (1 << 20)
	if samples["godwit_disk_low"] > 0 {
		return critical, fmt.Sprintf("it is short of space, and sends are refused: the store has %.0f MiB. Receive and delete messages, or add space", size)
	}
	return fine, fmt.Sprintf("the store has %.0f MiB", size)
}

// disksCheck checks the disks of a cluster's nodes: the metrics of one that does not own the state
// have nothing of its disk.
func disksCheck(ctx context.Context, api *client) (state, what string) {
	var cluster struct {
		Nodes []struct {
			Name, State string
			DiskLow     bool
		}
	}
	if err := api.get(ctx, "cluster", nil, &cluster); err != nil || len(cluster.Nodes) < 2 {
		return unknown, "the server tells nothing of its disk"
	}
	var low, silent []string
	state = warning
	for _, n := range cluster.Nodes {
		switch {
		case n.DiskLow:
			low = append(low, n.Name)
			if n.State == "serving" {
				state = critical
			}
		case n.State == "unreachable":
			silent = append(silent, n.Name)
		}
	}
	switch {
	case len(low) > 0:
		return state, "nodes are short of space, and refuse sends while one of them serves: " + strings.Join(low, ", ") + ". Receive and delete messages, or add space"
	case len(silent) > 0:
		return unknown, "nodes do not answer: " + strings.Join(silent, ", ")
	}
	return fine, "no node of the cluster is short of space"
}

// limitsCheck names the limits that are nearly used up, or were.
func limitsCheck(samples map[string]float64) (state, what string) {
	var near, refused []string
	n := 0
	for name, most := range samples {
		limit, ok := strings.CutPrefix(name, "godwit_limit_max{limit=\"")
		if !ok {
			continue
		}
		n++
		limit = strings.TrimSuffix(limit, "\"}")
		label := "{limit=\"" + limit + "\"}"
		if used := samples["godwit_limit_used"+label]; most > 0 && used >= limitWarns*most {
			near = append(near, fmt.Sprintf("%s: %.0f of %.0f", limit, used, most))
		} else if times := samples["godwit_limit_refused_total"+label]; times > 0 {
			refused = append(refused, fmt.Sprintf("%s: %.0f", limit, times))
		}
	}
	slices.Sort(near)
	slices.Sort(refused)
	switch {
	case len(near) > 0:
		return warning, "nearly used up: " + strings.Join(near, ", ") + ". The flags that raise them are in docs/monitoring.md"
	case len(refused) > 0:
		return fine, "there is room; refused since the start for want of it: " + strings.Join(refused, ", ")
	case n == 0:
		return unknown, "the server tells nothing of them"
	}
	return fine, fmt.Sprintf("there is room in all %d", n)
}

// text requests an answer that is not JSON.
func (c *client) text(ctx context.Context, path string) ([]byte, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.endpoint+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = refused(path, resp.StatusCode, text)
	}
	return text, err
}
