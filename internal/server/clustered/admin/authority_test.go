package admin

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// rotating are nodes with certificates, of which a has the authority.
type rotating struct {
	*bed
	t      *testing.T
	id     *ca.Identity
	posted []int // how many certificates of authorities the nodes were told to trust, each time
}

func (b *bed) rotates(t *testing.T) *rotating {
	dir := t.TempDir()
	err := ca.Init(dir, "a", clock.System.Now())
	wants(t, err)
	b.client.dir = dir
	r := &rotating{bed: b, t: t}
	r.id, err = ca.Load(dir, "a", []string{"a", "b", "c"}, clock.System.Now)
	wants(t, err)
	return r
}

// add has a node answer, which carries out changes; end ends the nth, once it is done.
func (r *rotating) add(name string, end func(n int, w http.ResponseWriter)) *fake {
	f := r.bed.add(name)
	f.stand = r.stands
	f.change = func(n int, c nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
		roots, err := ca.ParseRoots([]byte(c.Roots))
		wants(r.t, err)
		r.posted = append(r.posted, len(roots))
		_, _, err = r.id.Trust([]byte(c.Roots), []byte(c.Vouchers))
		wants(r.t, err)
		r.changes(func(l *roster.List) { l.Roots = c.Roots })
		end(n, w)
	}
	return f
}

// stands has each node follow the list at once.
func (r *rotating) stands() status.Cluster {
	s := r.bed.stands()
	trusts := r.id.Trusts()
	for i := range s.Nodes {
		s.Nodes[i].Certificate = &status.Certificate{Authority: trusts[0], Trusts: trusts}
	}
	return s
}

func (r *rotating) wantsSteps() {
	r.t.Helper()
	if got := strings.Join(r.told, "\n"); strings.Count(got, "Step ") != 3 || !strings.Contains(got, "Step 3 of 3") {
		r.t.Errorf("it tells:\n%s", got)
	}
	if len(r.id.Trusts()) != 1 {
		r.t.Errorf("the nodes trust %q", r.id.Trusts())
	}
}

// TestRotationGoesOn: lost answers, owners that are replaced and nodes that are not reached for a
// moment, in and between the steps, do not end a rotation.
func TestRotationGoesOn(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		r := b.rotates(t)
		a := r.add("a", func(n int, w http.ResponseWriter) {
			switch n {
			case 0: // the next step finds no owner for a moment
				r.owns("")
				go func() {
					pause(t.Context(), 5*time.Second)
					r.owns("a")
				}()
			case 1: // it is not known whether it is done
				r.owns("b")
				panic(http.ErrAbortHandler)
			}
			nodeapi.TellEnd(w, nil)
		})
		r.add("b", func(n int, w http.ResponseWriter) {
			r.set(address("a"), nil) // which is the one that is asked
			go func() {
				pause(t.Context(), 5*time.Second)
				r.set(address("a"), a)
			}()
			nodeapi.TellEnd(w, nil)
		})
		wants(t, r.client.RotateCA(t.Context(), nil, r.line))
		r.wantsSteps()
	})
}

// TestRotationIsGivenAgain: a rotation that has failed goes on where it stands, and does not undo a
// step, also where a node does not answer at first.
func TestRotationIsGivenAgain(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		r := b.rotates(t)
		r.add("a", func(n int, w http.ResponseWriter) {
			var err error
			if n == 1 {
				err = errors.New("node c does not learn who the nodes are")
			}
			nodeapi.TellEnd(w, err)
		})
		wants(t, r.client.RotateCA(t.Context(), nil, r.line), "node c does not learn")
		r.told = nil
		r.is("c", status.Unreachable)
		go func() {
			pause(t.Context(), 5*time.Second)
			r.is("c", "")
		}()
		wants(t, r.client.RotateCA(t.Context(), nil, r.line))
		r.wantsSteps()
		if len(r.posted) != 3 {
			t.Errorf("the nodes were told to trust %d authorities", r.posted)
		}
		if _, err := ca.Open(r.client.dir); err != nil {
			t.Errorf("the next authority has no key: %v", err)
		}
	})
}

// TestRotationBehindAnOldList: the node that is asked first has not learnt of the steps that are
// done, which are not undone.
func TestRotationBehindAnOldList(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		r := b.rotates(t)
		old := r.list
		a := r.add("a", func(n int, w http.ResponseWriter) {
			var err error
			if n == 1 {
				err = errors.New("node c does not learn who the nodes are")
			}
			nodeapi.TellEnd(w, err)
		})
		r.add("b", func(_ int, w http.ResponseWriter) { nodeapi.TellEnd(w, nil) })
		wants(t, r.client.RotateCA(t.Context(), nil, r.line), "node c does not learn")
		r.told = nil
		a.list = func() roster.List { return old }
		wants(t, r.client.RotateCA(t.Context(), nil, r.line))
		r.wantsSteps()
		if len(r.posted) != 3 {
			t.Errorf("the nodes were told to trust %d authorities", r.posted)
		}
	})
}

// TestRotationWaitsForNodes: a node that is away ends the rotation, unless it is left out.
func TestRotationWaitsForNodes(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		r := b.rotates(t)
		r.add("a", func(_ int, w http.ResponseWriter) { nodeapi.TellEnd(w, nil) })
		r.is("c", status.Unreachable)
		wants(t, r.client.RotateCA(t.Context(), nil, r.line), "node c does not answer", "--without")
		wants(t, r.client.RotateCA(t.Context(), []string{"a"}, r.line), "where the authority is")
		wants(t, r.client.RotateCA(t.Context(), []string{"c"}, r.line))
		r.wantsSteps()
	})
}
