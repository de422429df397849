package alarms

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/alarm/rule"
	"godwit.dev/godwit/internal/arn"
)

// MaxParents is how many composite alarms may depend on an alarm. Source: "Composite alarms" in the
// CloudWatch user guide.
const MaxParents = 150

// composite is what a composite alarm depends on.
type composite struct {
	rule       *rule.Rule
	children   []ID // the alarms in its rule
	suppressor ID   // zero: none
}

// on are all alarms that it depends on, each once.
func (c *composite) on() []ID {
	all := c.children
	if c.suppressor != (ID{}) && !slices.Contains(all, c.suppressor) {
		all = append(slices.Clip(all), c.suppressor)
	}
	return all
}

// child is the alarm of a name or an ARN that an alarm refers to. One of another account or region
// is none that there is.
func (id ID) child(reference string) ID {
	if a, err := arn.Parse(reference); err == nil {
		if name, ok := a.AlarmName(); ok {
			return ID{a.Account, a.Region, name}
		}
	}
	return ID{id.Account, id.Region, reference}
}

// parse finds what a composite alarm depends on. It fails as rule.Parse does.
func parse(a *alarm.Alarm) (*composite, error) {
	r, err := rule.Parse(a.Rule)
	if err != nil {
		return nil, err
	}
	c := &composite{rule: r}
	for _, reference := range r.Children() {
		if child := idOf(a).child(reference); !slices.Contains(c.children, child) {
			c.children = append(c.children, child)
		}
	}
	if a.Suppressor != nil {
		c.suppressor = idOf(a).child(a.Suppressor.Alarm)
	}
	return c, nil
}

// connect makes a composite alarm known to those that it depends on.
func (e *Engine) connect(id ID, c *composite) {
	e.composites[id] = c
	for _, child := range c.on() {
		if e.parents[child] == nil {
			e.parents[child] = map[ID]bool{}
		}
		e.parents[child][id] = true
	}
}

// disconnect undoes connect.
func (e *Engine) disconnect(id ID) {
	c, ok := e.composites[id]
	if !ok {
		return
	}
	delete(e.composites, id)
	for _, child := range c.on() {
		if delete(e.parents[child], id); len(e.parents[child]) == 0 {
			delete(e.parents, child)
		}
	}
}

// checked finds what a composite alarm depends on. It fails as parse does, and if an alarm is not
// there, or too many depend on one.
func (e *Engine) checked(a *alarm.Alarm) (*composite, error) {
	c, err := parse(a)
	if err != nil {
		return nil, err
	}
	var absent []string
	for _, child := range c.children {
		if e.alarms[child] == nil || child.scope() != idOf(a).scope() {
			absent = append(absent, child.Name)
		}
	}
	if len(absent) > 0 {
		return nil, ErrNoChildren.With(strings.Join(absent, ", "))
	}
	if c.suppressor != (ID{}) && (e.alarms[c.suppressor] == nil || c.suppressor.scope() != idOf(a).scope()) {
		return nil, ErrSuppressor.With(a.Suppressor.Alarm)
	}
	for _, child := range c.on() {
		if of := e.parents[child]; len(of) >= MaxParents && !of[idOf(a)] {
			return nil, ErrParents.With(MaxParents, child.Name)
		}
	}
	return c, nil
}

// neededBeyond are the names of those of the alarms on which a composite alarm depends that is not
// among them.
func (e *Engine) neededBeyond(all map[ID]bool) (names []string) {
	for id := range all {
		for parent := range e.parents[id] {
			if !all[parent] {
				names = append(names, id.Name)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

func errNeeded(names []string) error {
	if len(names) == 1 {
		return ErrNeeded.With(names[0])
	}
	return ErrAllNeeded.With(strings.Join(names, ","))
}

// Children are those of the alarms in the rule of a composite alarm that there are, and Parents the
// composite alarms in whose rules an alarm is, both by name.
func (e *Engine) Children(id ID) (children []alarm.Alarm) {
	_ = e.run(func() error {
		if c, ok := e.composites[id]; ok {
			children = e.sorted(c.children)
		}
		return nil
	})
	return children
}

// Parents are described at Children.
func (e *Engine) Parents(id ID) (parents []alarm.Alarm) {
	_ = e.run(func() error {
		var all []ID
		for parent := range e.parents[id] {
			if slices.Contains(e.composites[parent].children, id) {
				all = append(all, parent)
			}
		}
		parents = e.sorted(all)
		return nil
	})
	return parents
}

func (e *Engine) sorted(ids []ID) (all []alarm.Alarm) {
	for _, id := range ids {
		if a, ok := e.alarms[id]; ok {
			all = append(all, *a)
		}
	}
	slices.SortFunc(all, func(a, b alarm.Alarm) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// suppressing reports whether the suppressor of an alarm is in ALARM.
func (c *commit) suppressing(a *alarm.Alarm) bool {
	if a.Suppressor == nil {
		return false
	}
	s := c.alarm(idOf(a).child(a.Suppressor.Alarm))
	return s != nil && s.State == alarm.Alarming
}

// state is the state of a composite alarm by its rule.
func (c *commit) state(id ID) alarm.State {
	return c.e.composites[id].rule.Evaluate(func(reference string) alarm.State {
		if child := c.alarm(id.child(reference)); child != nil {
			return child.State
		}
		return ""
	})
}

// evaluate evaluates a composite alarm that was made, or reconfigured from before. Another
// suppressor ends what the one before it suppressed.
func (c *commit) evaluate(a, before *alarm.Alarm) {
	id := idOf(a)
	if before != nil && a.Suppressed != nil && (a.Suppressor == nil || before.Suppressor == nil || a.Suppressor.Alarm != before.Suppressor.Alarm) {
		a.EndPeriod()
	}
	if s := c.state(id); s != a.State && !c.e.cyclic(id) {
		children := make([]*alarm.Alarm, len(c.e.composites[id].children))
		for i, child := range c.e.composites[id].children {
			children[i] = c.alarm(child)
		}
		c.enter(a, a.Evaluated(s, before == nil, children))
		return
	}
	c.suppress(a)
}

// suppress lets a composite alarm's suppressor, or the end of a period, decide whether its actions
// are executed.
func (c *commit) suppress(a *alarm.Alarm) {
	before := *a
	if a.Suppress(false, c.suppressing(a), c.now) {
		a.Updated = c.now
		c.act(a, &before)
	}
	c.put(a)
}

// settle evaluates the composite alarms that depend on alarms whose state has changed, and those
// that depend on them. Each is evaluated once, after all that it depends on. Those in a cycle, and
// those that depend on one, are not evaluated, as AWS stops there.
func (c *commit) settle() {
	if len(c.entered) == 0 {
		return
	}
	for _, id := range c.e.dependent(c.entered) {
		c.follow(id)
	}
}

// follow evaluates a composite alarm after some that it depends on have another state. One whose
// state was set by hand keeps it until a child's changes.
func (c *commit) follow(id ID) {
	of, a := c.e.composites[id], *c.alarm(id)
	latest := 0 // among the children's; it is told as the reason
	for _, child := range of.children {
		latest = max(latest, c.place[child])
	}
	if latest > 0 {
		if s := c.state(id); s != a.State {
			c.enter(&a, alarm.Triggered(s, c.alarm(c.entered[latest-1])))
			return
		}
	}
	if c.place[of.suppressor] > 0 {
		c.suppress(&a)
	}
}

// dependent are the composite alarms that depend on some alarms, in an order in which each follows
// those that it depends on. Those in a cycle, and those that depend on one, are left out.
func (e *Engine) dependent(on []ID) (ordered []ID) {
	waiting := map[ID]int{} // of the dependent ones: for how many dependent ones they wait
	var all []ID
	for queue := slices.Clone(on); len(queue) > 0; queue = queue[1:] {
		for _, parent := range e.parentsOf(queue[0]) {
			if _, ok := waiting[parent]; !ok {
				waiting[parent] = 0
				all, queue = append(all, parent), append(queue, parent)
			}
		}
	}
	for _, id := range all {
		for _, child := range e.composites[id].on() {
			if _, ok := waiting[child]; ok {
				waiting[id]++
			}
		}
	}
	for _, id := range all {
		if waiting[id] == 0 {
			ordered = append(ordered, id)
		}
	}
	for i := 0; i < len(ordered); i++ {
		for _, parent := range e.parentsOf(ordered[i]) {
			if waiting[parent]--; waiting[parent] == 0 {
				ordered = append(ordered, parent)
			}
		}
	}
	return ordered
}

func compareIDs(a, b ID) int {
	return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Region, b.Region), strings.Compare(a.Name, b.Name))
}

// parentsOf are the composite alarms that depend on an alarm, by name.
func (e *Engine) parentsOf(id ID) []ID {
	return slices.SortedFunc(maps.Keys(e.parents[id]), func(a, b ID) int { return strings.Compare(a.Name, b.Name) })
}

// cyclic reports whether a composite alarm depends on itself, or on one that does.
func (e *Engine) cyclic(id ID) bool {
	const begun, done = 1, 2
	seen := map[ID]int{}
	var visit func(id ID) bool
	visit = func(id ID) bool {
		c, ok := e.composites[id]
		if !ok || seen[id] == done {
			return false
		}
		if seen[id] == begun {
			return true
		}
		seen[id] = begun
		if slices.ContainsFunc(c.on(), visit) {
			return true
		}
		seen[id] = done
		return false
	}
	return visit(id)
}

// NextDue implements kernel.Lifecycle: when a period ends that suppresses actions.
func (e *Engine) NextDue() (due int64) {
	for _, until := range e.periods {
		if at := until.UnixMilli(); due == 0 || at < due {
			due = at
		}
	}
	return due
}

// Tick implements kernel.Lifecycle.
func (e *Engine) Tick(int64) {
	c := e.begin()
	for _, id := range slices.SortedFunc(maps.Keys(e.periods), compareIDs) {
		if !e.periods[id].After(c.now) {
			a := *e.alarms[id]
			c.suppress(&a)
		}
	}
	if len(c.alarms) == 0 {
		return
	}
	c.apply()
	if !e.started.Load() {
		return // Start executes what is due
	}
	e.kernel.GoBackground(func() {
		if err := e.Execute(e.kernel.Running); err != nil {
			e.kernel.Logger.Error("alarms' actions cannot be executed now", "reason", err.Error())
		}
	})
}

// notePeriod notes when the period of an alarm's suppression ends.
func (e *Engine) notePeriod(a *alarm.Alarm) {
	if a.Suppressed == nil || a.Suppressed.Until.IsZero() {
		delete(e.periods, idOf(a))
		return
	}
	e.periods[idOf(a)] = a.Suppressed.Until
}
