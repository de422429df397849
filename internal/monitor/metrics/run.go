package metrics

// Runs is how many runs a resource may have: see Datum.
const Runs = 6

// run counts what comes again of a value that was just added to a metric: that
// takes no look for the metric and its minute. It is over, and what it has counted
// in its place, with the next other value, and before anybody looks at the resource.
type run struct {
	name, unit string
	minute     int64
	value      float64
	again      float64
	live       bool
}

// goOn counts a value if it goes on a run.
func (r *Resource) goOn(d *Datum, minute int64) bool {
	if r.runs == nil {
		return false
	}
	u := &r.runs[d.Run-1]
	if !u.live || u.minute != minute || u.value != d.Value {
		return false
	}
	u.again += float64(1 + d.Again)
	return true
}

// begin begins a run with a value that has been added.
func (r *Resource) begin(d *Datum, minute int64) {
	if r.runs == nil {
		r.runs = &[Runs]run{}
	}
	u := &r.runs[d.Run-1]
	r.end(u)
	*u = run{name: d.Name, unit: d.Unit, minute: minute, value: d.Value, live: true}
}

// end ends a run.
func (r *Resource) end(u *run) {
	if u.live && u.again > 0 {
		r.set(u.name, u.unit, false, u.minute, false).Add(u.value, u.again)
	}
	u.live = false
}

// settle ends all runs, under mu.
func (r *Resource) settle() {
	if r.runs == nil {
		return
	}
	for i := range r.runs {
		r.end(&r.runs[i])
	}
}
