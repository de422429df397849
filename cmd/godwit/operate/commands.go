package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// page is the default number of rows.
type page struct {
	Limit int `default:"100" help:"How many at most, up to 1000 (${default})."`
}

// list requests one page, or one thing, and prints it as a table.
func list(c *Connection, s Streams, path, member string, parameters func(ctx context.Context, api *client) (url.Values, error), columns ...column) error {
	return c.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		form, err := parameters(ctx, api)
		if err != nil {
			return nil, nil, err
		}
		answer := object{}
		err = api.get(ctx, path, form, &answer)
		return answer, func(w io.Writer, answer any) error {
			found := answer.(object)
			rows, _ := found[member].([]any)
			if err := table(w, columns, rows); err != nil {
				return err
			}
			if found["next"] != nil {
				_, err = fmt.Fprintln(w, "There are more: narrow it down, or raise --limit.")
			}
			return err
		}, err
	})
}

// detail requests one thing, and prints its members.
func detail(c *Connection, s Streams, path, service, name string) error {
	return c.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		arn, err := api.arn(ctx, service, name)
		if err != nil {
			return nil, nil, err
		}
		answer := object{}
		err = api.get(ctx, path, url.Values{"arn": {arn}}, &answer)
		return answer, members, err
	})
}

// members prints each member of an answer on a line of its own, with those of objects after a
// dot, and each element of a list on one.
func members(w io.Writer, answer any) error {
	rows := []any{}
	var add func(name string, value any)
	add = func(name string, value any) {
		switch v := value.(type) {
		case object:
			for _, inner := range slices.Sorted(maps.Keys(v)) {
				add(strings.TrimPrefix(name+"."+inner, "."), v[inner])
			}
			if len(v) == 0 {
				rows = append(rows, object{"name": name, "value": v})
			}
		case []any:
			for i, element := range v {
				if i > 0 {
					name = ""
				}
				rows = append(rows, object{"name": name, "value": element})
			}
			if len(v) == 0 {
				rows = append(rows, object{"name": name, "value": v})
			}
		default:
			rows = append(rows, object{"name": name, "value": v})
		}
	}
	add("", answer)
	value := member("", "value")
	value.whole = true
	return table(w, []column{member("", "name"), value}, rows)
}

func fixed(form url.Values) func(context.Context, *client) (url.Values, error) {
	return func(context.Context, *client) (url.Values, error) { return form, nil }
}

// whose selects the account and the region of a list.
type whose struct {
	Account string `env:"-" placeholder:"DIGITS" help:"Those of this account, and not of the server's own."`
	Region  string `env:"-" placeholder:"NAME" help:"Those of this region, and not of the server's own."`
}

// in adds them to the parameters of a list.
func (o *whose) in(form url.Values) url.Values {
	form.Set("account", o.Account)
	form.Set("region", o.Region)
	return form
}

// Queues lists queues, or shows one.
type Queues struct {
	Connection
	page
	whose
	Queue  string `arg:"" optional:"" help:"Name or ARN of a queue; without one they are listed."`
	Search string `placeholder:"TEXT" help:"Only those whose names have it."`
	Sort   string `enum:"name,messages" default:"name" help:"Order: ${enum} (${default}); by messages most first, of those that have any."`
	Kind   string `enum:"all,standard,fifo,dead-letter" default:"all" help:"Only these: ${enum} (${default})."`
	Tag    string `placeholder:"KEY[=VALUE]" help:"Only those with this tag."`
}

// Run prints them.
func (q *Queues) Run(s Streams) error {
	if q.Queue != "" {
		return detail(&q.Connection, s, "queue", "sqs", q.Queue)
	}
	form := url.Values{"search": {q.Search}, "sort": {q.Sort}, "kind": {q.Kind}, "tag": {q.Tag}, "limit": {strconv.Itoa(q.Limit)}}
	return list(&q.Connection, s, "queues", "queues", fixed(q.in(form)),
		member("NAME", "name"), count("VISIBLE", "visible"), count("IN FLIGHT", "inFlight"), count("DELAYED", "delayed"), age("OLDEST", "oldestAgeSeconds"),
		count("SENT/S", "rates.sent"), count("RECEIVED/S", "rates.received"), member("DEAD LETTERS TO", "deadLetterQueue"), tags)
}

// Topics lists topics, and shows their latest publishes.
type Topics struct {
	List      listTopics `cmd:"" default:"withargs" help:"List topics, or show one. The default."`
	Publishes publishes  `cmd:"" help:"Show what was published to a topic of late, and how many subscriptions took it."`
}

type publishes struct {
	Connection
	Topic  string `arg:"" help:"Name or ARN of a topic."`
	Search string `placeholder:"TEXT" help:"Only those with it in the subject, the body or an attribute."`
	ID     string `name:"id" placeholder:"ID" help:"Only the message with this id."`
	Limit  int    `default:"20" help:"How many at most, up to 100 (${default})."`
}

func (p *publishes) Run(s Streams) error {
	return list(&p.Connection, s, "publishes", "publishes", func(ctx context.Context, api *client) (url.Values, error) {
		topic, err := api.arn(ctx, "sns", p.Topic)
		return url.Values{"arn": {topic}, "search": {p.Search}, "id": {p.ID}, "limit": {strconv.Itoa(p.Limit)}}, err
	}, member("MESSAGE", "messageId"), member("PUBLISHED", "publishedAt"), count("BYTES", "sizeBytes"), column{title: "TAKEN BY", of: takers},
		count("FILTERED OUT", "filteredOut"), member("SUBJECT", "subject"), member("BODY", "body"))
}

// takers counts the subscriptions that accepted a message, of the known ones.
func takers(row object) string {
	all, _ := row["subscriptions"].([]any)
	taken := 0
	for _, one := range all {
		if of, _ := one.(object); of["taken"] == true {
			taken++
		}
	}
	if refused := written(row["refused"]); refused != "–" {
		return refused
	}
	return fmt.Sprintf("%d of %d", taken, len(all))
}

type listTopics struct {
	Connection
	page
	whose
	Topic  string `arg:"" optional:"" help:"Name or ARN of a topic; without one they are listed."`
	Search string `placeholder:"TEXT" help:"Only those whose names have it."`
	Tag    string `placeholder:"KEY[=VALUE]" help:"Only those with this tag."`
}

func (t *listTopics) Run(s Streams) error {
	if t.Topic != "" {
		return detail(&t.Connection, s, "topic", "sns", t.Topic)
	}
	form := url.Values{"search": {t.Search}, "tag": {t.Tag}, "limit": {strconv.Itoa(t.Limit)}}
	return list(&t.Connection, s, "topics", "topics", fixed(t.in(form)),
		member("NAME", "name"), count("SUBSCRIPTIONS", "subscriptions"), count("PENDING", "pending"), count("OWED", "owed"), count("PUBLISHED/S", "rates.published"), tags)
}

// Subscriptions lists subscriptions, and pauses and resumes their deliveries.
type Subscriptions struct {
	List   listSubscriptions `cmd:"" default:"withargs" help:"List subscriptions, or show one. The default."`
	Pause  pause             `cmd:"" help:"Stop the deliveries of a subscription."`
	Resume resume            `cmd:"" help:"Let them go on."`
}

type listSubscriptions struct {
	Connection
	page
	whose
	Subscription string `arg:"" optional:"" help:"ARN of a subscription; without one they are listed."`
	Topic        string `placeholder:"NAME" help:"Only those of a topic."`
	State        string `enum:",active,paused,pending-confirmation,failing" default:"" help:"Only these: active, paused, pending-confirmation, failing."`
	Sort         string `enum:"name,owed" default:"name" help:"Order: ${enum} (${default}); by what they are owed most first."`
	Search       string `placeholder:"TEXT" help:"Only those whose topic or endpoint has it."`
}

func (l *listSubscriptions) Run(s Streams) error {
	if l.Subscription != "" {
		return detail(&l.Connection, s, "subscription", "sns", l.Subscription)
	}
	return list(&l.Connection, s, "subscriptions", "subscriptions", func(ctx context.Context, api *client) (url.Values, error) {
		form := l.in(url.Values{"state": {l.State}, "sort": {l.Sort}, "search": {l.Search}, "limit": {strconv.Itoa(l.Limit)}})
		if l.Topic == "" {
			return form, nil
		}
		topic, err := api.arn(ctx, "sns", l.Topic)
		form.Set("topic", topic)
		return form, err
	}, member("SUBSCRIPTION", "arn"), member("PROTOCOL", "protocol"), member("ENDPOINT", "endpoint"), member("STATE", "state"), count("OWED", "owed"),
		age("OLDEST", "oldestAgeSeconds"), column{title: "LAST ATTEMPT", of: lastAttempt})
}

// lastAttempt is the result of the last attempt at a subscription, if it is known.
func lastAttempt(row object) string {
	detail, _ := dig(row, "lastAttempt.detail").(string)
	return cmp.Or(detail, written(dig(row, "lastAttempt.outcome")))
}

type pause struct {
	Connection
	Subscription string `arg:"" help:"ARN of a subscription."`
	Yes          bool   `env:"-" short:"y" help:"Do not ask. Without a terminal nobody is asked."`
}

func (p *pause) Run(s Streams) error {
	if !p.Yes {
		if err := s.sure("Stop the deliveries of " + Clean(p.Subscription) + "?"); err != nil {
			return err
		}
	}
	return p.change(s, "subscription/pause", p.Subscription)
}

type resume struct {
	Connection
	Subscription string `arg:"" help:"ARN of a subscription."`
}

func (r *resume) Run(s Streams) error { return r.change(s, "subscription/resume", r.Subscription) }

// change changes a subscription, and prints its new state.
func (c *Connection) change(s Streams, path, subscription string) error {
	return c.once(s, path, object{"subscription": subscription})
}

// once requests a change and prints the answer.
func (c *Connection) once(s Streams, path string, body object) error {
	one := *c
	one.Watch = 0
	return one.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		answer := object{}
		err := api.post(ctx, path, body, &answer)
		return answer, members, err
	})
}

// Deliveries lists the deliveries of a subscription, and releases those of a restored server.
type Deliveries struct {
	List  listDeliveries  `cmd:"" default:"withargs" help:"List the deliveries of a subscription. The default."`
	Begin beginDeliveries `cmd:"" help:"Have a server deliver that was restored with --paused."`
}

type beginDeliveries struct{ Connection }

func (b *beginDeliveries) Run(s Streams) error { return b.once(s, "delivering/begin", object{}) }

type listDeliveries struct {
	Connection
	page
	Subscription string `arg:"" help:"ARN of a subscription."`
	State        string `enum:",waiting,pending,in-flight,finished" default:"" help:"Only these: waiting, pending, in-flight, finished."`
}

func (d *listDeliveries) Run(s Streams) error {
	form := url.Values{"subscription": {d.Subscription}, "state": {d.State}, "limit": {strconv.Itoa(d.Limit)}}
	return list(&d.Connection, s, "deliveries", "deliveries", fixed(form),
		member("ID", "id"), member("MESSAGE", "messageId"), member("STATE", "state"), count("ATTEMPTS", "attempt"), member("NEXT", "nextAttemptAt"),
		column{title: "LAST", of: func(row object) string {
			attempts, _ := row["attempts"].([]any)
			if len(attempts) == 0 {
				return "–"
			}
			last, _ := attempts[len(attempts)-1].(object)
			return written(last["outcome"]) + " " + written(last["detail"])
		}}, member("REASON", "reason"))
}

// Messages shows messages of a queue without changing them.
type Messages struct {
	Connection
	Queue  string `arg:"" help:"Name or ARN of a queue."`
	State  string `enum:",visible,in-flight,delayed" default:"" help:"Only these: visible, in-flight, delayed."`
	Search string `placeholder:"TEXT" help:"Only those with it in the body or an attribute."`
	ID     string `name:"id" placeholder:"ID" help:"Only the message with this id."`
	Limit  int    `default:"20" help:"How many at most (${default})."`
}

// maxPage is the maximum number of messages of one request.
const maxPage = 100

// Run prints them.
func (m *Messages) Run(s Streams) error {
	if m.Limit < 1 {
		return errors.New("--limit: want a number above 0")
	}
	return m.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		queue, err := api.arn(ctx, "sqs", m.Queue)
		if err != nil {
			return nil, nil, err
		}
		rows := []any{}
		form := url.Values{"arn": {queue}, "state": {m.State}, "search": {m.Search}, "id": {m.ID}}
		scanned := 0
		defer func() {
			if form.Has("cursor") {
				fmt.Fprintln(s.Err) // after the progress bar
			}
		}()
		for len(rows) < m.Limit {
			form.Set("limit", strconv.Itoa(min(maxPage, m.Limit-len(rows))))
			answer := object{}
			if err := api.get(ctx, "messages", form, &answer); err != nil {
				return nil, nil, err
			}
			found, _ := answer["messages"].([]any)
			rows = append(rows, found...)
			next, more := answer["next"].(string)
			if !more {
				break
			}
			form.Set("cursor", next)
			n, _ := strconv.Atoi(written(answer["scanned"]))
			scanned += n
			fmt.Fprintf(s.Err, "\r%s", progress(object{"done": strconv.Itoa(scanned), "total": answer["total"]}))
		}
		return object{"messages": rows}, func(w io.Writer, _ any) error {
			return table(w, []column{
				member("POSITION", "position"), member("MESSAGE", "messageId"), member("SENT", "sentAt"), member("STATE", "state"), count("RECEIVES", "receives"),
				count("BYTES", "sizeBytes"), member("CAUSE", "deadLetter.cause"), member("BODY", "body"),
			}, rows)
		}, nil
	})
}

// DLQ shows dead letters, and redrives them.
type DLQ struct {
	Show    deadLetters `cmd:"" help:"Show the messages of a dead-letter queue by why they died."`
	Redrive redrive     `cmd:"" help:"Move all of them back to where they came from, or to a queue."`
	Status  redrives    `cmd:"" help:"Show how redrives of a queue stand."`
}

type deadLetters struct {
	Connection
	Queue string `arg:"" help:"Name or ARN of a dead-letter queue."`
}

func (d *deadLetters) Run(s Streams) error {
	return d.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		queue, err := api.arn(ctx, "sqs", d.Queue)
		if err != nil {
			return nil, nil, err
		}
		type group struct {
			From  string `json:"from"`
			Kind  string `json:"kind"`
			Cause string `json:"cause"`
		}
		counts := map[group]int{}
		for form := (url.Values{"arn": {queue}}); ; {
			var answer struct {
				Groups []struct {
					group
					Count int `json:"count"`
				}
				Next *string
			}
			if err := api.get(ctx, "dead-letters", form, &answer); err != nil {
				return nil, nil, err
			}
			for _, g := range answer.Groups {
				counts[g.group] += g.Count
			}
			if answer.Next == nil {
				break
			}
			form.Set("cursor", *answer.Next)
		}
		rows := []any{}
		for g, n := range counts {
			rows = append(rows, object{"count": n, "from": g.From, "kind": g.Kind, "cause": g.Cause})
		}
		slices.SortFunc(rows, func(a, b any) int {
			x, y := a.(object), b.(object)
			if n := y["count"].(int) - x["count"].(int); n != 0 {
				return n
			}
			return slices.Compare([]string{x["from"].(string), x["cause"].(string)}, []string{y["from"].(string), y["cause"].(string)})
		})
		return object{"groups": rows}, func(w io.Writer, _ any) error {
			return table(w, []column{count("COUNT", "count"), member("FROM", "from"), member("KIND", "kind"), member("CAUSE", "cause")}, rows)
		}, nil
	})
}

type redrive struct {
	Connection
	Queue string `arg:"" help:"Name or ARN of a dead-letter queue."`
	To    string `placeholder:"QUEUE" help:"Where to, by name or ARN; else each message goes to where it came from."`
	Rate  *int   `placeholder:"N" help:"Messages a second, 1 to 500; else as fast as they go."`
	Yes   bool   `env:"-" short:"y" help:"Do not ask. Without a terminal nobody is asked."`
}

func (r *redrive) Run(s Streams) error {
	ctx := context.Background()
	api := r.client()
	queue, err := api.arn(ctx, "sqs", r.Queue)
	if err != nil {
		return err
	}
	body := object{"arn": queue}
	if r.To != "" {
		if body["to"], err = api.arn(ctx, "sqs", r.To); err != nil {
			return err
		}
	}
	if r.Rate != nil {
		body["perSecond"] = *r.Rate
	}
	if s.Terminal && !r.Yes {
		left := object{}
		if err := api.get(ctx, "queue", url.Values{"arn": {queue}}, &left); err != nil {
			return err
		}
		if err := s.sure("Move the " + Clean(written(left["messages"])) + " messages of " + Clean(queue) + "?"); err != nil {
			return err
		}
	}
	return r.once(s, "redrive", body)
}

type redrives struct {
	Connection
	Queue string `arg:"" help:"Name or ARN of a dead-letter queue."`
}

func (r *redrives) Run(s Streams) error {
	return list(&r.Connection, s, "redrives", "redrives", func(ctx context.Context, api *client) (url.Values, error) {
		queue, err := api.arn(ctx, "sqs", r.Queue)
		return url.Values{"arn": {queue}}, err
	}, member("ID", "id"), member("STATE", "state"), column{title: "PROGRESS", of: progress}, member("TO", "to"), member("STARTED", "startedAt"), member("ERROR", "error"))
}

// barWidth is the width of a progress bar.
const barWidth = 20

// progress draws the progress of a redrive.
func progress(row object) string {
	done, _ := strconv.Atoi(written(row["done"]))
	all, _ := strconv.Atoi(written(row["total"]))
	if all <= 0 {
		return fmt.Sprint(done)
	}
	full := min(barWidth*done/all, barWidth)
	bar := make([]rune, barWidth)
	for i := range bar {
		bar[i] = '░'
		if i < full {
			bar[i] = '█'
		}
	}
	return fmt.Sprintf("%s %d of %d", string(bar), done, all)
}

// Functions lists functions, or shows one.
type Functions struct {
	Connection
	page
	whose
	Function string `arg:"" optional:"" help:"Name or ARN of a function; without one they are listed."`
	Search   string `placeholder:"TEXT" help:"Only those whose names have it."`
}

// Run prints them.
func (f *Functions) Run(s Streams) error {
	if f.Function != "" {
		return detail(&f.Connection, s, "function", "lambda", f.Function)
	}
	form := url.Values{"search": {f.Search}, "limit": {strconv.Itoa(f.Limit)}}
	return list(&f.Connection, s, "functions", "functions", fixed(f.in(form)),
		member("NAME", "name"), member("RUNTIME", "runtime"), member("STATE", "state"), count("EVENTS", "events"), count("MAPPINGS", "mappings"), member("MODIFIED", "modifiedAt"))
}
