package plan

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"godwit.dev/godwit/internal/topic/retry"
)

// The picture, in its own units.
const (
	pictureWidth = 960
	left, right  = 96, 930 // of the plots
	ink, faint   = "#1f2933", "#d9dee4"
	muted        = "#5f6b7a"
)

// Colours that people with any colour vision can distinguish (after Okabe and Ito).
var (
	phaseColours = map[retry.Phase]string{
		retry.Immediate: "#cc79a7", retry.PreBackoff: "#e69f00", retry.BackoffPhase: "#0072b2", retry.PostBackoff: "#009e73",
	}
	functionColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}
)

// picture is an SVG under construction.
type picture struct{ strings.Builder }

func begin(height int, title, subtitle string) *picture {
	p := &picture{}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="14" fill="%s">`,
		pictureWidth, height, pictureWidth, height, ink)
	p.add(`<title>%s</title>`, html.EscapeString(title))
	p.add(`<rect width="%d" height="%d" fill="#ffffff"/>`, pictureWidth, height)
	p.add(`<text x="24" y="38" font-size="21" font-weight="bold">%s</text>`, html.EscapeString(title))
	p.add(`<text x="24" y="62" fill="%s">%s</text>`, muted, html.EscapeString(subtitle))
	return p
}

func (p *picture) add(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *picture) end(w io.Writer) error {
	p.add(`</svg>`)
	_, err := io.WriteString(w, p.String())
	return err
}

// text writes a text at a point; anchor is start, middle or end.
func (p *picture) text(x, y float64, anchor, format string, args ...any) {
	p.add(`<text x="%s" y="%s" text-anchor="%s" fill="%s">%s</text>`, at(x), at(y), anchor, ink, html.EscapeString(fmt.Sprintf(format, args...)))
}

func (p *picture) line(x1, y1, x2, y2 float64, colour string) {
	p.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`, at(x1), at(y1), at(x2), at(y2), colour)
}

// at is a coordinate, to a tenth.
func at(f float64) string { return tenths(f) }

// axis is a range of values along a length.
type axis struct {
	from, to float64 // coordinates of 0 and max
	max      float64
	step     float64
}

// newAxis makes an axis from 0 to at least top with about n round steps.
func newAxis(from, to, top float64, n int) axis {
	if top <= 0 {
		top = 1
	}
	raw := top / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, f := range []float64{1, 2, 5} {
		if f*power >= raw*0.999 {
			step = f * power
			break
		}
	}
	return axis{from, to, math.Ceil(top/step-1e-9) * step, step}
}

func (a axis) place(v float64) float64 { return a.from + (a.to-a.from)*v/a.max }

// unit is the unit of times up to a length on an axis.
func unit(longest time.Duration) (name string, of time.Duration) {
	switch {
	case longest <= 5*time.Minute:
		return "s", time.Second
	case longest <= 3*time.Hour:
		return "min", time.Minute
	case longest <= 3*24*time.Hour:
		return "h", time.Hour
	default:
		return "d", 24 * time.Hour
	}
}

func in(d, unit time.Duration) float64 { return float64(d) / float64(unit) }

// vertical draws the axis of the delays, with a grid.
func (p *picture) vertical(a axis, label string) {
	for v := 0.0; v <= a.max*1.0001; v += a.step {
		y := a.place(v)
		p.line(left, y, right, y, faint)
		p.text(left-10, y+5, "end", "%s", number(v))
	}
	middle := (a.from + a.to) / 2
	p.add(`<text x="26" y="%s" text-anchor="middle" transform="rotate(-90 26 %s)">%s</text>`, at(middle), at(middle), html.EscapeString(label))
}

func number(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// FunctionsSVG draws the four backoff functions.
func FunctionsSVG(w io.Writer) error {
	const top, bottom = 92.0, 460.0
	p := begin(530, functionsTitle, functionsSubtitle)
	y := newAxis(bottom, top, example.MaxDelayTarget.Seconds(), 6)
	p.vertical(y, "delay before the retry (s)")
	x := func(i int) float64 { return left + 30 + float64(i)*(right-left-60)/float64(example.NumRetries-1) }
	for i := range example.NumRetries {
		p.line(x(i), bottom, x(i), bottom+6, muted)
		p.text(x(i), bottom+24, "middle", "%d", i+1)
	}
	p.line(left, bottom, right, bottom, muted)
	p.text((left+right)/2, bottom+50, "middle", "retry of the backoff phase")
	for k, f := range functions {
		policy := example
		policy.Backoff = f
		var points []string
		var marks strings.Builder
		for i := range example.NumRetries {
			d, _ := policy.Delay(i)
			cx, cy := x(i), y.place(d.Seconds())
			points = append(points, at(cx)+","+at(cy))
			fmt.Fprint(&marks, mark(k, cx, cy))
		}
		p.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2.5"/>`, strings.Join(points, " "), functionColours[k])
		p.add(`<g fill="%s">%s</g>`, functionColours[k], marks.String())
		row := top + 22 + float64(k)*27
		p.add(`<rect x="%d" y="%s" width="232" height="27" fill="#ffffff"/>`, left+20, at(row-18))
		p.add(`<line x1="%d" y1="%s" x2="%d" y2="%s" stroke="%s" stroke-width="2.5"/>`, left+30, at(row-5), left+70, at(row-5), functionColours[k])
		p.add(`<g fill="%s">%s</g>`, functionColours[k], mark(k, left+50, row-5))
		p.text(left+82, row, "start", "%s, %s in all", f, moment(policy.Total()))
	}
	return p.end(w)
}

// mark is a point of a curve: each has a shape of its own.
func mark(kind int, x, y float64) string {
	switch kind {
	case 0:
		return fmt.Sprintf(`<circle cx="%s" cy="%s" r="5"/>`, at(x), at(y))
	case 1:
		return fmt.Sprintf(`<rect x="%s" y="%s" width="9" height="9"/>`, at(x-4.5), at(y-4.5))
	case 2:
		return fmt.Sprintf(`<path d="M%s %s l6 10 h-12 z"/>`, at(x), at(y-6))
	default:
		return fmt.Sprintf(`<path d="M%s %s l6 6 l-6 6 l-6 -6 z"/>`, at(x), at(y-6))
	}
}

// column is a retry in the picture, or the place of many omitted ones.
type column struct {
	retry   int // from 1
	phase   retry.Phase
	delay   time.Duration
	at      time.Duration
	omitted int // how many are omitted here; 0: it is a retry
}

// maxColumns is the number of retries up to which a picture shows all; beyond it shows only
// runHead and runTail retries of a long run.
const (
	maxColumns = 110
	runHead    = 12
	runTail    = 3
)

func columnsOf(p retry.Policy) (all []column) {
	steps := stepsOf(p)
	for i := range steps {
		s := &steps[i]
		for k := range s.count() {
			if p.NumRetries > maxColumns && s.count() > runHead+runTail+1 && k >= runHead && k < s.count()-runTail {
				if k == runHead {
					all = append(all, column{phase: s.phase, delay: s.delay, omitted: s.count() - runHead - runTail})
				}
				continue
			}
			all = append(all, column{retry: s.first + k, phase: s.phase, delay: s.delay, at: s.from + time.Duration(k)*s.delay})
		}
	}
	return all
}

// gap is the width of omitted retries, in columns.
const gap = 5

// SVG draws the policy: each retry's delay, and the attempts along a line of time.
func (p Plan) SVG(w io.Writer) error {
	const top, bottom = 150.0, 420.0
	out := begin(580, "Delivery policy: "+p.Name, p.summary())
	columns := columnsOf(p.Policy)
	for i, ph := range phasesOf(p.Policy) {
		x, y := 24+float64(i%2)*420, 84+float64(i/2)*24
		out.add(`<rect x="%s" y="%s" width="14" height="14" fill="%s"/>`, at(x), at(y), phaseColours[ph.phase])
		out.text(x+22, y+12, "start", "%s: %s, %s", ph.phase, counted(ph.retries, "retry", "retries"), ph.words)
	}
	longest := time.Duration(0)
	for _, c := range columns {
		longest = max(longest, c.delay)
	}
	name, of := unit(longest)
	y := newAxis(bottom, top, in(longest, of), 5)
	out.vertical(y, "delay before the retry ("+name+")")
	out.bars(columns, y, of)
	out.line(left, bottom, right, bottom, muted)
	out.text((left+right)/2, bottom+46, "middle", "retry")
	out.timeline(p.Policy, columns, 500)
	return out.end(w)
}

// bars draws a bar for each retry, and numbers some.
func (p *picture) bars(columns []column, y axis, of time.Duration) {
	slots := 0
	for _, c := range columns {
		if slots++; c.omitted > 0 {
			slots += gap - 1
		}
	}
	width := (right - left - 12) / float64(max(slots, 1))
	thick := min(width*0.72, 40)
	every := 10 // every tenth one is numbered, or more
	for _, n := range []int{5, 2, 1} {
		if float64(n)*width >= 34 {
			every = n
		}
	}
	x := left + 6.0
	for i, c := range columns {
		if c.omitted > 0 {
			h := y.from - y.place(in(c.delay, of))
			p.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.15"/>`,
				at(x), at(y.from-h), at(width*gap), at(h), phaseColours[c.phase])
			p.text(x+width*gap/2, y.from-max(h/2-5, 8), "middle", "%s more", thousands(c.omitted))
			x += width * gap
			continue
		}
		middle := x + width/2
		h := y.from - y.place(in(c.delay, of))
		if c.delay == 0 {
			p.add(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, at(middle), at(y.from-4), at(min(thick/2, 4)), phaseColours[c.phase])
		} else {
			p.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`,
				at(middle-thick/2), at(y.from-h), at(thick), at(max(h, 1.5)), phaseColours[c.phase])
		}
		free := float64(c.retry-1)*width >= 30 && float64(len(columns)-1-i)*width >= 46 // distance to the first number, and to the last
		if c.retry == 1 || c.retry%every == 0 && free && c.retry < 1000 {
			p.text(middle, y.from+22, "middle", "%s", thousands(c.retry))
		} else if i == len(columns)-1 {
			p.text(min(middle, right-4), y.from+22, "end", "%s", thousands(c.retry))
		}
		x += width
	}
}

// timeline draws the attempts as strokes along a line of time.
func (p *picture) timeline(policy retry.Policy, columns []column, y float64) {
	total := policy.Total()
	name, of := unit(total)
	a := newAxis(left, right, in(total, of), 8)
	p.text(left-10, y+5, "end", "attempts")
	if policy.NumRetries > maxColumns { // too many for strokes
		steps := stepsOf(policy)
		for i := range steps {
			s := &steps[i]
			from := a.place(in(s.from, of))
			p.add(`<rect x="%s" y="%s" width="%s" height="24" fill="%s"/>`, at(from), at(y-12), at(max(a.place(in(s.until, of))-from, 1.5)), phaseColours[s.phase])
		}
	} else {
		for _, c := range columns {
			p.stroke(a.place(in(c.at, of)), y, phaseColours[c.phase])
		}
	}
	p.stroke(a.from, y, ink)
	p.line(left, y+20, right, y+20, muted)
	for v := 0.0; v <= a.max*1.0001; v += a.step {
		p.line(a.place(v), y+20, a.place(v), y+26, muted)
		p.text(a.place(v), y+42, "middle", "%s", number(v))
	}
	p.text((left+right)/2, y+66, "middle", "time since the first attempt (%s), without jitter and the attempts' own time", name)
}

func (p *picture) stroke(x, y float64, colour string) {
	p.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="2"/>`, at(x), at(y-12), at(x), at(y+12), colour)
}
