package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// The files in testdata/scenarios are life cycles of messages, as SQS and SNS
// want them. Times are Go durations; a message is named by its body, and a
// handle by the message and the number of the receive, a/2, and after a restart
// its epoch, a/2@2. The windows hold
// four messages, so that scenarios reach the disk.
func TestScenarios(t *testing.T) {
	defer func(w, o, g int) { windowSize, orderSize, groupSize = w, o, g }(windowSize, orderSize, groupSize)
	windowSize, orderSize, groupSize = 4, 4, 2
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{handles: map[string]Handle{}, leases: map[Handle]Lease{}, sequences: map[string]uint64{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.run(t, d)
			if err != nil {
				out += err.Error() + "\n"
			}
			if s.b != nil && len(s.b.broken) > 0 {
				t.Fatalf("%s: counters disagree with records: %v", d.Pos, s.b.broken)
			}
			return out
		})
	})
}

type scenario struct {
	b         *bench
	started   int64
	synced    *strictStore
	handles   map[string]Handle
	leases    map[Handle]Lease
	sequences map[string]uint64
}

// body is what is written in a message's record.
func (s *scenario) body(lane layout.Lane, seq uint64) string {
	record, ok := s.b.store.get(s.b.m.Keys().Record(lane, seq))
	if !ok {
		return fmt.Sprintf("(no record %d)", seq)
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return err.Error()
	}
	return string(m.Body)
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) (string, error) {
	var delay, visibility, timeout, by, age, due string
	most := 1
	d.MaybeScanArgs(t, "delay", &delay)
	d.MaybeScanArgs(t, "visibility", &visibility)
	d.MaybeScanArgs(t, "timeout", &timeout)
	d.MaybeScanArgs(t, "by", &by)
	d.MaybeScanArgs(t, "age", &age)
	d.MaybeScanArgs(t, "due", &due)
	d.MaybeScanArgs(t, "max", &most)

	switch d.Cmd {
	case "queue":
		s.b = newBench(s.config(t, d), Kind{FIFO: d.HasArg("fifo"), Backlog: d.HasArg("backlog")})
		s.started = s.b.now
	case "configure":
		s.b.cfg = s.config(t, d)
		return "", s.b.run(Configure{s.b.cfg})
	case "advance":
		s.b.now += ms(t, by)
		return fmt.Sprintf("at %v\n", time.Duration(s.b.now-s.started)*time.Millisecond), nil
	case "reopen":
		return "", s.b.reopen()
	case "synced":
		s.synced = &strictStore{values: maps.Clone(s.b.store.values), sets: maps.Clone(s.b.store.sets)}
	case "crash": // loses what came after the last synced
		s.b.store = s.synced
		return "", s.b.reopen()
	case "send":
		for _, name := range names(d) {
			if err := s.send(t, d, name, delay, age); err != nil {
				return "", err
			}
		}
	case "receive":
		hidden := s.b.cfg.Visibility.Milliseconds()
		if d.HasArg("visibility") {
			hidden = ms(t, visibility)
		}
		return s.receive(most, hidden)
	case "delete":
		return s.each(d, func(h Handle) error {
			return s.b.run(Delete{h})
		})
	case "visibility":
		return s.each(d, func(h Handle) error {
			return s.b.run(ChangeVisibility{h, ms(t, timeout)})
		})
	case "return":
		return s.each(d, func(h Handle) error {
			err := s.b.run(Return{Lease: s.leases[h], Due: s.b.now + ms(t, due), Uncounted: d.HasArg("uncounted"), History: d.HasArg("history")})
			if d.HasArg("history") && err == nil {
				s.b.batch.Set(s.b.m.Keys().History(h.Sequence), []byte("attempts"))
			}
			return s.b.after(err)
		})
	case "reject-move":
		return s.each(d, func(h Handle) error { return s.b.run(RejectMove{h.Sequence}) })
	case "moved":
		return s.each(d, func(h Handle) error {
			return s.b.run(Remove{h.Lane, h.Sequence})
		})
	case "expire":
		return "", s.b.run(Expire{})
	case "sweep":
		return s.sweep()
	case "counts":
		return s.counts()
	case "timer":
		at := s.b.m.NextTimer(s.b.now)
		if at == 0 {
			return "none\n", nil
		}
		return fmt.Sprintf("in %v\n", time.Duration(at-s.b.now)*time.Millisecond), nil
	case "moving":
		var moving []string
		for _, l := range s.b.m.Leases() {
			if l.Moving && !l.Task {
				moving = append(moving, s.body(l.Lane, l.Sequence))
			}
		}
		slices.Sort(moving)
		return fmt.Sprintln(moving, s.b.m.Moving()), nil
	default:
		d.Fatalf(t, "unknown command")
	}
	return "", nil
}

// after commits what a command wrote.
func (t *bench) after(err error) error {
	if e := t.commit(); e != nil {
		return e
	}
	return err
}

func ms(t *testing.T, text string) int64 {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}

// names are the arguments without a value.
func names(d *datadriven.TestData) (names []string) {
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 && a.Key != "uncounted" && a.Key != "history" {
			names = append(names, a.Key)
		}
	}
	return names
}

func (s *scenario) config(t *testing.T, d *datadriven.TestData) Config {
	cfg := Config{Visibility: 30 * time.Second, Retention: 4 * 24 * time.Hour}
	var visibility, retention, delay string
	d.MaybeScanArgs(t, "delay", &delay)
	cfg.Delay = time.Duration(ms(t, delay)) * time.Millisecond
	d.MaybeScanArgs(t, "visibility", &visibility)
	d.MaybeScanArgs(t, "retention", &retention)
	d.MaybeScanArgs(t, "max-receives", &cfg.MaxReceives)
	if visibility != "" {
		cfg.Visibility = time.Duration(ms(t, visibility)) * time.Millisecond
	}
	if retention != "" {
		cfg.Retention = time.Duration(ms(t, retention)) * time.Millisecond
	}
	if cfg.MaxReceives > 0 && !d.HasArg("no-dead-letters") {
		cfg.DeadLetter = arn.Queue("us-east-1", "000000000000", "dead")
	}
	return cfg
}

func (s *scenario) send(t *testing.T, d *datadriven.TestData, name, delay, age string) error {
	m := message.Message{Sent: s.b.now - ms(t, age), Body: []byte(name)}
	d.MaybeScanArgs(t, "group", &m.Group)
	a := Arrival{Record: m.AppendRecord(nil), Sent: m.Sent, Due: s.b.now + ms(t, delay), Lane: layout.GroupLane(m.Group), Moved: d.HasArg("age")}
	var err error
	s.sequences[name], err = s.b.accept(a)
	return err
}

func (s *scenario) receive(limit int, visibility int64) (string, error) {
	var out strings.Builder
	r, err := s.b.receive(limit, visibility)
	for _, l := range r.Leases {
		name := s.body(l.Lane, l.Sequence)
		handle := fmt.Sprintf("%s/%d", name, l.Receives)
		if s.b.epoch > 1 { // a crash may have lost a receive of that number
			handle += fmt.Sprintf("@%d", s.b.epoch)
		}
		h := Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}
		s.handles[handle], s.leases[h] = h, l
		fmt.Fprintf(&out, "%s first %v", handle, time.Duration(l.First-s.started)*time.Millisecond)
		out.WriteString("\n")
	}
	for _, l := range r.Moves {
		name := s.body(l.Lane, l.Sequence)
		s.handles[name+"/moving"] = Handle{Sequence: l.Sequence, Lane: l.Lane}
		fmt.Fprintf(&out, "to the dead letters: %s after %d\n", name, l.Receives)
	}
	if out.Len() == 0 && err == nil {
		return "nothing\n", nil
	}
	return out.String(), err
}

// each runs a command for each handle that is named.
func (s *scenario) each(d *datadriven.TestData, f func(h Handle) error) (string, error) {
	var out strings.Builder
	for _, name := range names(d) {
		h, ok := s.handles[name]
		if !ok {
			return "", fmt.Errorf("no handle %s", name)
		}
		result := "ok"
		if err := f(h); err != nil {
			result = err.Error()
		}
		fmt.Fprintf(&out, "%s: %s\n", name, result)
	}
	return out.String(), nil
}

func (s *scenario) sweep() (string, error) {
	bodies := map[uint64]string{}
	for name, seq := range s.sequences {
		bodies[seq] = name
	}
	dropped, err := s.b.sweep()
	var gone []string
	for _, seq := range dropped {
		gone = append(gone, bodies[seq])
	}
	slices.Sort(gone)
	return fmt.Sprintln("dropped", gone), err
}

func (s *scenario) counts() (string, error) {
	// Not by Count, which would return the leases that have run out.
	for need := s.b.m.needToCount(); !need.Nothing(); need = s.b.m.needToCount() {
		if _, err := s.b.m.Fill(s.b, need); err != nil {
			return "", err
		}
	}
	c := s.b.m.Counts(s.b.now)
	k := s.b.m.Keys()
	records := map[string]int{}
	for name, kind := range map[string]layout.Tag{"records": layout.TagRecord, "expiries": layout.TagExpiry, "histories": layout.TagHistory} {
		records[name] = s.b.store.count(k, kind)
	}
	return fmt.Sprintf("visible %d, in flight %d, delayed %d; %d records", c.Visible, c.InFlight, c.Delayed, records["records"]) +
		extra(", %d expiries", records["expiries"]) + extra(", %d histories", records["histories"]) + "\n", nil
}

func extra(format string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}
