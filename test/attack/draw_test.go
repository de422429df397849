package attack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/wire/shape"
)

// drawer draws inputs for operations. It learns names and tokens from requests and
// answers, so that some of what it draws is about things that exist.
type drawer struct {
	rand  *rand.Rand
	left  int                 // how many bytes the input may still get
	known map[string][]string // texts by the names of members, in lower case
	usual bool                // the input is to be one that makes sense, but for a slip
	scope string              // the service of the operation, as ARNs have it
}

func newDrawer(r *rand.Rand) *drawer { return &drawer{rand: r, known: map[string][]string{}} }

// chance is true once in n times.
func (d *drawer) chance(n int) bool { return d.rand.IntN(n) == 0 }

func pick[T any](d *drawer, of ...T) T { return of[d.rand.IntN(len(of))] }

const remembered = 30 // texts of a name

// odd is true for a member that is to be drawn at random: once in n times, and rarely
// in an input that is to make sense.
func (d *drawer) odd(n int) bool {
	if d.usual {
		n = 60
	}
	return d.chance(n)
}

// learn remembers a text that stood in a member.
func (d *drawer) learn(name, text string) {
	if name == "" || text == "" || len(text) > 2000 {
		return
	}
	name = strings.TrimSuffix(strings.ToLower(name), "s") // of a list of them
	all := d.known[name]
	switch {
	case slices.Contains(all, text):
	case len(all) < remembered:
		d.known[name] = append(all, text)
	default:
		all[d.rand.IntN(remembered)] = text
	}
}

// maxInput bounds what is drawn for an input, in bytes: above what a server takes.
const maxInput = 3 << 20

// input draws an input for an operation.
func (d *drawer) input(t *shape.Type) object {
	d.left = maxInput
	d.usual = !d.chance(3)
	in, _ := d.structure(t, 0).(object)
	for range 3 {
		if !d.odd(12) {
			break
		}
		in = append(in, member{name: pick(d, "Unknown", "__type", "constructor", "", "\x00", strings.Repeat("n", 300)), value: d.anything(0)})
	}
	if len(in) > 0 && d.odd(20) { // a duplicate key
		in = append(in, in[d.rand.IntN(len(in))])
	}
	return in
}

func (d *drawer) structure(t *shape.Type, depth int) document {
	o := object{}
	for i := range t.Fields {
		f := &t.Fields[i]
		if leave := d.chance(2); f.Required && !d.odd(25) {
		} else if d.usual && !f.Required && needed[strings.ToLower(f.Name)] == d.chance(8) || !d.usual && leave {
			continue
		}
		o = append(o, member{name: f.JSON, field: f, value: d.value(f.Name, f.Type, depth+1)})
	}
	return o
}

// value draws what stands in a member.
func (d *drawer) value(name string, t *shape.Type, depth int) document {
	switch {
	case d.left < 0:
		return nil
	case d.odd(60):
		return d.anything(depth)
	case d.odd(100):
		return nil
	}
	switch t.Kind {
	case shape.String:
		return d.text(name)
	case shape.Int, shape.Long:
		return d.integer(name)
	case shape.Float:
		return d.float()
	case shape.Bool:
		return d.chance(2)
	case shape.Time:
		return d.time(name)
	case shape.Blob:
		if d.usual {
			d.left -= 1000
			return handlerZip()
		}
		return d.blob()
	case shape.List:
		l := list{}
		for range d.size() {
			l = append(l, d.value(name, t.Elem, depth+1))
		}
		return l
	case shape.Map, shape.Pairs:
		o := object{}
		for range d.size() {
			key := d.key(name)
			o = append(o, member{name: key, value: d.value(key, t.Elem, depth+1)})
		}
		return o
	default:
		return d.structure(t, depth)
	}
}

// size is how many elements a collection gets.
func (d *drawer) size() int {
	if d.left -= 100; d.left < maxInput/2 {
		return 0
	}
	if d.usual && !d.chance(60) {
		return 1 + d.rand.IntN(4)/3
	}
	switch d.rand.IntN(60) {
	case 0:
		return pick(d, 10, 11, 25, 26, 50, 51, 100, 101, 151)
	case 1:
		return pick(d, 500, 1001, 10_001)
	default:
		return d.rand.IntN(4)
	}
}

var integers = []string{
	"-1", "0", "1", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "18446744073709551616", "1e3", "1.5", "1e308", "1e309", "-0", "12345678901234567890123456789", "1209600", "1209601", "43200", "43201", "900", "901",
}

func (d *drawer) integer(name string) document {
	if name == "WaitTimeSeconds" { // a wait is on the machine's time
		return pick(d, number("0"), "-1", "21", "2147483648")
	}
	if d.usual && strings.HasSuffix(name, "Period") {
		return pick(d, number("60"), "300", "10")
	}
	which := d.rand.IntN(4)
	if d.usual && !d.chance(30) {
		which = 3
	}
	switch which {
	case 0:
		return number(pick(d, integers...))
	case 1:
		return number(fmt.Sprint(60 * d.rand.IntN(100)))
	case 2:
		return number(fmt.Sprint(d.rand.IntN(1200)))
	default:
		return number(fmt.Sprint(1 + d.rand.IntN(10)))
	}
}

func (d *drawer) float() document {
	if d.usual && !d.chance(30) {
		return number(fmt.Sprint(d.rand.IntN(100)))
	}
	switch d.rand.IntN(4) {
	case 0:
		return number(pick(d, integers...))
	case 1:
		return pick[document](d, "NaN", "Infinity", "-Infinity", "nan", number("4.9e-324"), number("1.7976931348623157e308"), number("2.35e110"), number("-2.36e110"))
	default:
		return number(fmt.Sprint(d.rand.NormFloat64() * 1000))
	}
}

func (d *drawer) time(name string) document {
	now := float64(time.Now().Unix())
	if d.usual && !d.chance(30) {
		if strings.HasPrefix(name, "Start") {
			now -= 3600
		}
		return moment(now)
	}
	switch d.rand.IntN(6) {
	case 0:
		return pick(d, moment(-1), 0, -62135596800, -62135596801, 253402300799, 253402300800, 1e15, 1e18, -1e300)
	case 1:
		return pick(d, "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "tomorrow", "")
	case 2:
		return moment(now - 86400*float64(d.rand.IntN(500)))
	default:
		return moment(now + float64(d.rand.IntN(7200)-3600))
	}
}

func (d *drawer) blob() document {
	if d.left -= 300_000; d.left < 0 {
		return []byte{}
	}
	switch d.rand.IntN(6) {
	case 0:
		return []byte{}
	case 1:
		return "*no base64*"
	case 2:
		return make([]byte, d.rand.IntN(5000))
	case 3:
		return bomb()
	default:
		return handlerZip()
	}
}

// anything draws a value of no type in particular.
func (d *drawer) anything(depth int) document {
	if depth > 5 {
		return nil
	}
	switch d.rand.IntN(12) {
	case 0:
		return d.chance(2)
	case 1, 2:
		return number(pick(d, integers...))
	case 3:
		return d.blob()
	case 4:
		return list{d.anything(depth + 1), d.anything(depth + 1)}
	case 5:
		return object{{name: "a", value: d.anything(depth + 1)}, {name: "a", value: d.anything(depth + 1)}}
	case 6:
		return d.time("")
	case 7:
		return list{}
	case 8:
		return object{}
	case 9:
		return nil
	default:
		return d.text("")
	}
}

// text draws the text of a member: one that was seen there, one that makes sense
// there, or an odd one.
func (d *drawer) text(name string) string {
	s := d.anyText(name)
	if d.left -= len(s) + 10; d.left < 0 {
		return ""
	}
	return s
}

func (d *drawer) anyText(name string) string {
	name = strings.ToLower(name)
	if name == "messagebody" || name == "value" || name == "description" {
		if d.usual {
			return pick(d, "hello", "1", `{"a":1}`)
		}
	}
	stem := strings.TrimSuffix(name, "s")
	if all := d.known[stem]; len(all) > 0 && !d.odd(4) && !d.chance(10) {
		return pick(d, all...)
	}
	if all := sensible[name]; len(all) > 0 && strings.HasSuffix(name, "arn") && !d.odd(4) {
		return pick(d, all...)
	}
	if strings.Contains(name, "arn") || strings.HasPrefix(name, "resource") {
		var own []string
		for _, arn := range d.known["arn"] {
			if strings.Contains(arn, ":"+d.scope+":") {
				own = append(own, arn)
			}
		}
		if len(own) > 0 && !d.odd(4) {
			return pick(d, own...)
		}
		if all := d.known["arn"]; len(all) > 0 && !d.odd(4) {
			return pick(d, all...)
		}
	}
	if all := append(sensible[name], sensible[stem]...); len(all) > 0 && !d.odd(4) {
		return pick(d, all...)
	}
	if d.usual || d.chance(3) {
		return pick(d, "name", "other", "third") + pick(d, "", "", "1", "-1", "_x")
	}
	return d.oddText()
}

func (d *drawer) oddText() string {
	switch d.rand.IntN(16) {
	case 0:
		return ""
	case 1:
		return strings.Repeat(pick(d, "x", "é", "😀", "\\", "*", "[", "a.", "%"), pick(d, 64, 80, 81, 128, 129, 255, 256, 257, 1024, 1025))
	case 2:
		return strings.Repeat("y", pick(d, 2049, 8192, 20_481, 65_536, 262_144, 262_145, 1_048_577))
	case 3:
		return pick(d, "\xff\xfe", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x00", "a\x00b", "\ufffe", "\uffff", "\x7f", "\u202e", "\ufeff")
	case 4:
		return pick(d, "a\nb", "a\r\nX-Injected: 1", "a\tb", "\r", "\n", "\u2028")
	case 5:
		return pick(d, "../../etc/passwd", "..", ".", "/", "//", "%2e%2e%2f", "..\\..", "a/../b", "file:///etc/passwd")
	case 6:
		return pick(d, integers...)
	case 7:
		return pick(d, "{}", "[]", "{", "null", "true", `"x"`, `{"a":`, "[[[[[[", `{"":""}`, "%", "%zz", "<x/>", "<![CDATA[", "&lt;", "' OR 1=1", "$(id)", "${jndi:x}")
	case 8:
		return strings.Repeat("[", pick(d, 10, 1000, 50_000))
	case 9:
		return strings.Repeat(`{"a":`, pick(d, 10, 1000, 20_000)) + "1" + strings.Repeat("}", 3)
	case 10:
		return pick(d, "arn:aws:sqs:us-east-1:000000000000:none", "arn:aws:sns:us-east-1:000000000000:none", "arn:aws:lambda:us-east-1:000000000000:function:none:1",
			"arn:aws:logs:us-east-1:000000000000:log-group:none:*", "arn:aws:cloudwatch:us-east-1:000000000000:alarm:none", "arn:::::", "arn:aws:sqs:::", strings.Repeat(":", 40),
			"arn:aws:sqs:eu-west-1:123456789012:far", "arn:aws:sns:us-east-1:000000000000:none:"+strings.Repeat("0", 36))
	case 11:
		return pick(d, "true", "false", "TRUE", "yes", "0", "1", "-1", "NaN", "All", "*", ".*", "all", "None")
	default:
		var all []string
		for _, name := range sortedKeys(d.known) {
			all = append(all, d.known[name]...)
		}
		if len(all) == 0 {
			return "x"
		}
		s := pick(d, all...)
		if at := d.rand.IntN(len(s)); d.chance(3) { // half of it, or with one byte changed
			return s[:at]
		} else if d.chance(3) {
			return s[:at] + string([]byte{byte(d.rand.IntN(256))}) + s[at+1:]
		}
		return s
	}
}

// key draws the key of a map that is a member.
func (d *drawer) key(name string) string {
	switch keys := mapKeys[strings.ToLower(name)]; {
	case len(keys) > 0 && !d.chance(6):
		return pick(d, keys...)
	case d.chance(2):
		return pick(d, "k", "key", "Key2", "a.b", "AWS.x", "aws:x", "kind")
	}
	return d.text("")
}
