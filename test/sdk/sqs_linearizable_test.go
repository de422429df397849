package sdk_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"godwit.dev/godwit/internal/config"
)

// maxMessages bounds the messages of one history: their numbers are its bodies.
const maxMessages = 256

// queueState is what a standard queue is to its users. Time stands still while
// they use it; between, it advances beyond every visibility timeout.
type queueState struct {
	visible, hidden [maxMessages]bool
	receives        [maxMessages]uint8
}

// The operations of a history.
type (
	sendOp    struct{ message int }
	receiveOp struct {
		most int
		wait bool
		// deleted are the messages that somebody deleted while the receive was
		// under way: it may have taken them and yet not show them.
		deleted []int
	}
	deleteOp struct{ message int } // by the handle of any receive
	changeOp struct {
		message int
		receive uint8 // whose handle it is
		hide    bool  // until the next advance; else it returns at once
	}
	countOp   struct{}
	advanceOp struct{}
)

// Their answers; the others have none.
type (
	received struct {
		message int
		receive uint8
	}
	changeAnswer struct{ gone bool }
	countAnswer  struct{ visible, hidden int }
)

func (s *queueState) counts() (c countAnswer) {
	for m := range maxMessages {
		if s.visible[m] {
			c.visible++
		}
		if s.hidden[m] {
			c.hidden++
		}
	}
	return c
}

// take gives the states in which the messages of a receive are hidden, and as
// many more of those that were deleted meanwhile as the receive had to take.
func (s queueState) take(in receiveOp, got []received) (after []any) {
	more := min(in.most, s.counts().visible) - len(got)
	for _, r := range got {
		if !s.visible[r.message] || s.receives[r.message]+1 != r.receive {
			return nil
		}
		s.hide(r.message)
	}
	return s.takeMore(more, in.deleted)
}

func (s queueState) takeMore(n int, of []int) (after []any) {
	if n == 0 {
		return []any{s}
	}
	for i, m := range of {
		if n > 0 && s.visible[m] {
			with := s
			with.hide(m)
			after = append(after, with.takeMore(n-1, of[i+1:])...)
		}
	}
	return after
}

func (s *queueState) hide(m int) {
	s.visible[m], s.hidden[m] = false, true
	s.receives[m]++
}

// step gives the states that an operation may lead to when it is answered so;
// none if it cannot be.
func step(state, in, out any) []any {
	s := state.(queueState) // a copy
	switch in := in.(type) {
	case sendOp:
		s.visible[in.message] = true
	case receiveOp:
		return s.take(in, out.([]received))
	case deleteOp:
		s.visible[in.message], s.hidden[in.message] = false, false
	case changeOp:
		there := s.visible[in.message] || s.hidden[in.message]
		if out.(changeAnswer).gone == there {
			return nil
		}
		if there {
			s.visible[in.message], s.hidden[in.message] = !in.hide, in.hide
		}
	case countOp:
		if out.(countAnswer) != s.counts() {
			return nil
		}
	case advanceOp:
		for m, hidden := range s.hidden {
			if hidden {
				s.visible[m], s.hidden[m] = true, false
			}
		}
	}
	return []any{s}
}

var standardQueue = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{queueState{}} },
	Step: step,
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%T%+v → %+v", in, in, out)
	},
}).ToModel()

// A history is made by many clients of one queue at once. Its moments are the
// numbers of a counter: an operation that ended before another began has the
// smaller ones.
type history struct {
	url    string
	http   *http.Client
	still  *sync.RWMutex
	moment atomic.Int64
	next   atomic.Int64 // message

	mu         sync.Mutex
	handles    []handle
	operations []porcupine.Operation
}

type handle struct {
	received
	handle string
}

// run makes one operation and notes it.
func (h *history) run(client int, in any, do func() (any, error)) error {
	h.still.RLock()
	defer h.still.RUnlock()
	began := h.moment.Add(1)
	out, err := do()
	ended := h.moment.Add(1)
	if err != nil {
		return fmt.Errorf("%T%+v: %w", in, in, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: began, Return: ended})
	return nil
}

// ask sends a request in JSON to the queue. A refusal is its text.
func (h *history) ask(operation string, in members, out any) (refusal string, err error) {
	in["QueueUrl"] = h.url
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequest(http.MethodPost, h.url, strings.NewReader(string(body))) //nolint:noctx // ends with the test's server
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	resp, err := h.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return string(answer), nil
	}
	if out != nil {
		err = json.Unmarshal(answer, out)
	}
	return "", err
}

// must is ask where nothing may be refused.
func (h *history) must(operation string, in members, out any) error {
	refusal, err := h.ask(operation, in, out)
	if err == nil && refusal != "" {
		err = fmt.Errorf("refused: %s", refusal)
	}
	return err
}

func (h *history) send(client int) error {
	message := int(h.next.Add(1)) - 1
	if message >= maxMessages {
		return nil
	}
	return h.run(client, sendOp{message}, func() (any, error) {
		return nil, h.must("SendMessage", members{"MessageBody": strconv.Itoa(message)}, nil)
	})
}

func (h *history) receive(client, most int, wait bool) error {
	in := members{"MaxNumberOfMessages": most, "AttributeNames": list{"ApproximateReceiveCount"}}
	if wait {
		in["WaitTimeSeconds"] = 1
	}
	return h.run(client, receiveOp{most: most, wait: wait}, func() (any, error) {
		var out struct {
			Messages []struct {
				Body, ReceiptHandle string
				Attributes          struct {
					ApproximateReceiveCount uint8 `json:",string"`
				}
			}
		}
		err := h.must("ReceiveMessage", in, &out)
		got := make([]received, len(out.Messages))
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, m := range out.Messages {
			message, bad := strconv.Atoi(m.Body)
			if bad != nil {
				return nil, bad
			}
			got[i] = received{message, m.Attributes.ApproximateReceiveCount}
			h.handles = append(h.handles, handle{got[i], m.ReceiptHandle})
		}
		return got, err
	})
}

// pick gives a handle of any receive so far.
func (h *history) pick(random *rand.Rand) (handle, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.handles) == 0 {
		return handle{}, false
	}
	// Mostly of a late one: those before are often of deleted messages.
	n := len(h.handles)
	return h.handles[n-1-min(random.IntN(n), random.IntN(n))], true
}

func (h *history) delete(client int, of handle) error {
	return h.run(client, deleteOp{of.message}, func() (any, error) {
		return nil, h.must("DeleteMessage", members{"ReceiptHandle": of.handle}, nil)
	})
}

func (h *history) change(client int, of handle, hide bool) error {
	timeout := map[bool]int{false: 0, true: 30}[hide]
	return h.run(client, changeOp{of.message, of.receive, hide}, func() (any, error) {
		refusal, err := h.ask("ChangeMessageVisibility", members{"ReceiptHandle": of.handle, "VisibilityTimeout": timeout}, nil)
		if refusal != "" && !strings.Contains(refusal, "Message does not exist") {
			return nil, fmt.Errorf("refused: %s", refusal)
		}
		return changeAnswer{gone: refusal != ""}, err
	})
}

func (h *history) count(client int) error {
	return h.run(client, countOp{}, func() (any, error) {
		var out struct {
			Attributes struct {
				ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible int `json:",string"`
			}
		}
		err := h.must("GetQueueAttributes", members{"AttributeNames": list{"All"}}, &out)
		return countAnswer{out.Attributes.ApproximateNumberOfMessages, out.Attributes.ApproximateNumberOfMessagesNotVisible}, err
	})
}

// act does one thing, drawn at random.
func (h *history) act(client int, random *rand.Rand) error {
	choice := random.IntN(100)
	of, ok := h.pick(random)
	switch {
	case choice < 30 || !ok && choice >= 70:
		return h.send(client)
	case choice < 60:
		return h.receive(client, 1+random.IntN(3), false)
	case choice < 65:
		return h.receive(client, 10, true)
	case choice < 70:
		return h.count(client)
	case choice < 85:
		return h.delete(client, of)
	default:
		return h.change(client, of, choice < 92)
	}
}

// What clients see of a queue that they use at once could have been seen one
// after the other: nothing is lost, given to two at once, or comes back after
// its deletion, and no receive finds too little.
func TestQueueIsLinearizable(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.Store = config.PebbleStore })
	c := client(endpoint)
	const (
		queues  = 6
		clients = 8
		acts    = 70
	)
	transport := &http.Transport{MaxIdleConnsPerHost: queues * clients}
	defer transport.CloseIdleConnections()
	var still sync.RWMutex // read while time must not pass
	histories := make([]*history, queues)
	for i := range histories {
		histories[i] = &history{
			url:  createQueue(t, c, fmt.Sprint("q", i), "VisibilityTimeout", "30"),
			http: &http.Client{Transport: signing{transport}}, still: &still,
		}
	}
	timePasses := func() {
		still.Lock()
		defer still.Unlock()
		for _, h := range histories {
			h.operations = append(h.operations, porcupine.Operation{ClientId: clients, Input: advanceOp{}, Call: h.moment.Add(1), Return: h.moment.Add(1)})
		}
		advance(t, endpoint, "31s")
	}
	var group sync.WaitGroup
	for q, h := range histories {
		for client := range clients {
			random := rand.New(rand.NewPCG(uint64(q), uint64(client)))
			group.Go(func() {
				for range acts {
					if q+client == 0 && random.IntN(10) == 0 {
						timePasses()
					}
					if err := h.act(client, random); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if t.Failed() {
		return
	}
	timePasses()
	for i, h := range histories {
		// All that was sent and not deleted is there at the end.
		for empty := false; !empty; {
			if err := h.receive(0, 10, false); err != nil {
				t.Fatal(err)
			}
			empty = len(h.operations[len(h.operations)-1].Output.([]received)) == 0
		}
		kinds := map[string]int{}
		for _, op := range h.operations {
			kinds[fmt.Sprintf("%T", op.Input)]++
		}
		noteDeletions(h.operations)
		slices.SortStableFunc(h.operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		result, info := porcupine.CheckOperationsVerbose(standardQueue, h.operations, 5*time.Minute)
		if result != porcupine.Ok {
			t.Errorf("queue %d is %s: %v", i, result, kinds)
			explain(t, h.operations, info)
		}
	}
}

// noteDeletions tells each receive what was deleted while it was under way.
func noteDeletions(all []porcupine.Operation) {
	for i := range all {
		in, ok := all[i].Input.(receiveOp)
		if !ok {
			continue
		}
		for _, other := range all {
			if d, ok := other.Input.(deleteOp); ok && other.Call < all[i].Return && all[i].Call < other.Return && !slices.Contains(in.deleted, d.message) {
				in.deleted = append(in.deleted, d.message)
			}
		}
		all[i].Input = in
	}
}

// explain shows the end of the longest order of operations that is right, and
// the operations that are missing from it: one of the first must be wrong.
func explain(t *testing.T, all []porcupine.Operation, info porcupine.LinearizationInfo) {
	t.Helper()
	const most = 30
	show := func(op porcupine.Operation) {
		t.Logf("%d–%d client %d: %s", op.Call, op.Return, op.ClientId, standardQueue.DescribeOperation(op.Input, op.Output))
	}
	var longest []porcupine.Operation
	for _, right := range info.PartialLinearizationsOperations()[0] {
		if len(right) > len(longest) {
			longest = right
		}
	}
	begun := map[int64]bool{}
	for _, op := range longest {
		begun[op.Call] = true
	}
	for _, op := range longest[max(0, len(longest)-most):] {
		show(op)
	}
	t.Log("cannot follow:")
	all = slices.DeleteFunc(slices.Clone(all), func(op porcupine.Operation) bool { return begun[op.Call] })
	for _, op := range all[:min(len(all), most)] {
		show(op)
	}
}

// The model refuses what a queue must not do.
func TestModelRefuses(t *testing.T) {
	type done struct{ in, out any }
	one := []received{{0, 1}}
	for name, all := range map[string][]done{
		"a message that nobody sent":     {{receiveOp{most: 1}, one}},
		"a message given to two":         {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {receiveOp{most: 1}, []received{{0, 2}}}},
		"a message lost":                 {{sendOp{0}, nil}, {receiveOp{most: 1}, []received{}}},
		"too few":                        {{sendOp{0}, nil}, {sendOp{1}, nil}, {receiveOp{most: 2}, one}},
		"a message that was deleted":     {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {deleteOp{0}, nil}, {advanceOp{}, nil}, {receiveOp{most: 1}, []received{{0, 2}}}},
		"a change of what is deleted":    {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {deleteOp{0}, nil}, {changeOp{0, 1, true}, changeAnswer{}}},
		"a return that has no effect":    {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {changeOp{0, 1, false}, changeAnswer{}}, {receiveOp{most: 1}, []received{}}},
		"a wrong receive count":          {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {advanceOp{}, nil}, {receiveOp{most: 1}, one}},
		"a wrong count":                  {{sendOp{0}, nil}, {countOp{}, countAnswer{}}},
		"a visibility that did not end":  {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {advanceOp{}, nil}, {receiveOp{most: 1}, []received{}}},
		"no earlier receive's change":    {{sendOp{0}, nil}, {receiveOp{most: 1}, one}, {advanceOp{}, nil}, {receiveOp{most: 1}, []received{{0, 2}}}, {changeOp{0, 1, false}, changeAnswer{}}, {countOp{}, countAnswer{hidden: 1}}},
		"a message that is not the next": {{sendOp{0}, nil}, {receiveOp{most: 1}, []received{{1, 1}}}},
	} {
		var operations []porcupine.Operation
		for i, d := range all {
			operations = append(operations, porcupine.Operation{Input: d.in, Output: d.out, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if porcupine.CheckOperations(standardQueue, operations) {
			t.Errorf("%s is taken for right", name)
		}
		if len(operations) > 1 && !porcupine.CheckOperations(standardQueue, operations[:len(operations)-1]) {
			t.Errorf("%s: what goes before it is taken for wrong", name)
		}
	}
}
