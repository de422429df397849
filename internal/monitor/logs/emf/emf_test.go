package emf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// shown is a document: its time, and its metrics as "namespace name[dimensions] unit values", those of
// high resolution with a "!".
func shown(d Document) (all []string) {
	if d.Timed {
		all = append(all, fmt.Sprint(d.Time))
	}
	for _, m := range d.Metrics {
		var by []string
		for _, one := range metrics.SplitDimensions(m.Dimensions) {
			by = append(by, one.Name+"="+one.Value)
		}
		fine := ""
		if m.Fine {
			fine = "!"
		}
		all = append(all, fmt.Sprintf("%s %s%v %s %v%s", m.Namespace, m.Name, by, m.Unit, m.Values, fine))
	}
	return all
}

// document is a document with directives, and members of the root.
func document(directives, members string) string {
	if members != "" {
		members = "," + members
	}
	return `{"_aws":{"Timestamp":1700000000000,"CloudWatchMetrics":[` + directives + `]}` + members + `}`
}

func TestRead(t *testing.T) {
	const at = "1700000000000"
	one := func(names, members string) string {
		return document(`{"Namespace":"App","Dimensions":[[]],"Metrics":[`+names+`]}`, members)
	}
	by := func(sets, members string) string {
		return document(`{"Namespace":"App","Dimensions":`+sets+`,"Metrics":[{"Name":"n"}]}`, `"n":1,`+members)
	}
	for _, c := range []struct {
		what, message string
		want          []string
	}{
		{"a number", one(`{"Name":"n"}`, `"n":1.5`), []string{at, "App n[] None [1.5]"}},
		{"white space around it", " \n" + one(`{"Name":"n"}`, `"n":-1e3`) + "\n", []string{at, "App n[] None [-1000]"}},
		{"an array", one(`{"Name":"n"}`, `"n":[1,2.5,3]`), []string{at, "App n[] None [1 2.5 3]"}},
		{"units and resolutions", one(`{"Name":"n","Unit":"Bytes/Second","StorageResolution":1},{"Name":"m","StorageResolution":60}`, `"n":1,"m":2`), []string{at, "App n[] Bytes/Second [1]!", "App m[] None [2]"}},
		{"members that are not known", document(`{"Namespace":"App","Dimensions":[[]],"Metrics":[{"Name":"n","x":{}}],"y":1}`, `"n":1,"z":[null]`), []string{at, "App n[] None [1]"}},
		{"a member that is not nested", one(`{"Name":"a.b"},{"Name":"c.d"}`, `"a.b":1,"c":{"d":1}`), []string{at, "App a.b[] None [1]"}},
		{"a name that is case-sensitive", one(`{"Name":"n"}`, `"N":1`), []string{at}},
		{"several sets", by(`[["a"],["b","a"],[]]`, `"a":"1","b":"2"`), []string{at, "App n[a=1] None [1]", "App n[a=1 b=2] None [1]", "App n[] None [1]"}},
		{"sets whose members do not fit", by(`[["a"],["b"],["c"],["d"],["e"],["f"],["a","a"],["a","b"]]`, `"a":"1","b":2,"c":"","d":"é","e":["x"]`), []string{at, "App n[a=1] None [1]"}},
		{"no set", by(`[]`, `"a":"1"`), []string{at, "App n[] None [1]"}},
		{"no sets", document(`{"Namespace":"App","Metrics":[{"Name":"n"}]}`, `"n":1`), []string{at, "App n[] None [1]"}},
		{"several directives", document(`{"Namespace":"A","Dimensions":[["d"]],"Metrics":[{"Name":"n"}]},{"Namespace":"B","Dimensions":[[]],"Metrics":[{"Name":"n"},{"Name":"m"}]}`, `"n":1,"m":2,"d":"x"`), []string{at, "A n[d=x] None [1]", "B n[] None [1]", "B m[] None [2]"}},
		{"none", document(``, ``), []string{at}},
		{"metrics whose members do not fit", one(`{"Name":"a"},{"Name":"b"},{"Name":"c"},{"Name":"d"},{"Name":"e"},{"Name":"n"}`, `"a":"1","b":null,"c":{"x":1},"d":[1,"2"],"e":[],"n":0`), []string{at, "App n[] None [0]"}},
		{"values out of the bounds", one(`{"Name":"a"},{"Name":"b"},{"Name":"n"}`, `"a":1e308,"b":1e999,"n":[1,1e308,1e-320,1e999,2]`), []string{at, "App n[] None [1 2]"}},
		{"values at the bounds", one(`{"Name":"n"}`, `"n":[`+fmt.Sprintf("%.0f,%.0f", metrics.Largest, 2*metrics.Largest)+`,1e-400]`), []string{at, "App n[] None [2.3485425827738332e+108 0]"}},
		{"a null in an array", one(`{"Name":"n"}`, `"n":[1,null]`), []string{at}},
		{"members twice", one(`{"Name":"n"}`, `"n":1,"n":2`), []string{at, "App n[] None [2]"}},
		{"a resolution with decimals", one(`{"Name":"n","StorageResolution":1.0}`, `"n":1`), []string{at, "App n[] None [1]!"}},
		{"an object that is deep", one(`{"Name":"n"}`, `"n":1,"z":`+strings.Repeat("[", 9999)+strings.Repeat("]", 9999)), []string{at, "App n[] None [1]"}},
		{"no time", `{"_aws":{"CloudWatchMetrics":[{"Namespace":"App","Metrics":[{"Name":"n"}]}]},"n":1}`, []string{"App n[] None [1]"}},
	} {
		d, ok := Read(c.message)
		if diff := cmp.Diff(c.want, shown(d)); !ok || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.what, ok, diff)
		}
	}
}

// What is no valid document has no metrics.
func TestReadInvalid(t *testing.T) {
	names := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"Name":"n"},`, n), ",") }
	keys := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"d",`, n), ",") }
	directive := func(namespace, dimensions, metrics string) string {
		return document(`{"Namespace":`+namespace+`,"Dimensions":`+dimensions+`,"Metrics":`+metrics+`}`, `"n":1,"d":"x","many":[`+strings.Repeat("1,", 100)+`1]`)
	}
	if d, ok := Read(directive(`"App"`, `[["d"]]`, "["+names(100)+"]")); !ok || len(d.Metrics) != 100 {
		t.Fatalf("a hundred: %v, %d", ok, len(d.Metrics))
	}
	long := strings.Repeat("x", 256)
	good := directive(`"App"`, `[["d"]]`, "["+names(1)+"]")
	for _, message := range []string{
		"", " ", "{}", "x", "[" + good + "]", good + "x", good + good, "x " + good, good[:len(good)-1], "\t" + good + ",",
		`{"CloudWatchMetrics":[]}`, `{"_aws":null,"x":"CloudWatchMetrics"}`, `{"_aws":{"CloudWatchMetrics":null}}`, `{"_aws":{"CloudWatchMetrics":{}}}`, `{"_aws":[{"CloudWatchMetrics":[]}]}`,
		`{"_aws":{"cloudwatchmetrics":[],"Timestamp":1,"x":"CloudWatchMetrics"}}`, `{"_AWS":{"CloudWatchMetrics":[]}}`,
		strings.Replace(good, "1700000000000", `"1700000000000"`, 1), strings.Replace(good, "1700000000000", "null", 1), strings.Replace(good, "1700000000000", "1.5", 1), strings.Replace(good, "1700000000000", "1e300", 1),
		strings.Replace(good, "CloudWatchMetrics", `\u0043loudWatchMetrics`, 1), strings.Replace(good, `"n":1`, `"n":1,"z":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000), 1),
		document("null", `"n":1`), document("1", `"n":1`), document(`{"Namespace":"App","Dimensions":[[]]}`, ""), document(`{"Dimensions":[[]],"Metrics":[]}`, ""),
		directive(`""`, `[[]]`, "["+names(1)+"]"), directive(`1`, `[[]]`, "["+names(1)+"]"), directive(`"AWS/X"`, `[[]]`, "["+names(1)+"]"), directive(`":x"`, `[[]]`, "["+names(1)+"]"),
		directive(`"é"`, `[[]]`, "["+names(1)+"]"), directive(`"a\n"`, `[[]]`, "["+names(1)+"]"), directive(`"`+long+`"`, `[[]]`, "["+names(1)+"]"),
		directive(`"App"`, `[[]]`, "["+names(101)+"]"), directive(`"App"`, `[[]]`, `null`), directive(`"App"`, `[[]]`, `["n"]`), directive(`"App"`, `[[]]`, `[null]`), directive(`"App"`, `[[]]`, `[{"name":"n"}]`),
		directive(`"App"`, `[[]]`, `[{"Name":""}]`), directive(`"App"`, `[[]]`, `[{"Name":1}]`), directive(`"App"`, `[[]]`, `[{"Name":"`+long+`"}]`), directive(`"App"`, `[[]]`, `[{"Name":"é"}]`),
		directive(`"App"`, `[[]]`, `[{"Name":"many"}]`),
		directive(`"App"`, `[[]]`, `[{"Name":"n","Unit":"count"}]`), directive(`"App"`, `[[]]`, `[{"Name":"n","Unit":null}]`), directive(`"App"`, `[[]]`, `[{"Name":"n","Unit":1}]`),
		directive(`"App"`, `[[]]`, `[{"Name":"n","StorageResolution":30}]`), directive(`"App"`, `[[]]`, `[{"Name":"n","StorageResolution":"1"}]`), directive(`"App"`, `[[]]`, `[{"Name":"n","StorageResolution":null}]`),
		directive(`"App"`, `null`, "["+names(1)+"]"), directive(`"App"`, `["d"]`, "["+names(1)+"]"), directive(`"App"`, `[null]`, "["+names(1)+"]"), directive(`"App"`, `[[null]]`, "["+names(1)+"]"), directive(`"App"`, `[[1]]`, "["+names(1)+"]"),
		directive(`"App"`, `[[""]]`, "["+names(1)+"]"), directive(`"App"`, `[["`+long[:251]+`"]]`, "["+names(1)+"]"), directive(`"App"`, `[[`+keys(31)+`]]`, "["+names(1)+"]"),
	} {
		if d, ok := Read(message); ok || len(d.Metrics) > 0 {
			t.Errorf("%.200s has %v", message, shown(d))
		}
	}
}

// A function's runtime may put fields before what the function writes.
func TestReadLogged(t *testing.T) {
	good := document(`{"Namespace":"App","Dimensions":[[]],"Metrics":[{"Name":"n"}]}`, `"n":1`)
	for message, want := range map[string]bool{
		good: true, good + "\n": true, "\t" + good: true,
		"2026-11-30T12:00:00.000Z\t6bc28136-xmpl-4365-b021-0ce6b2e64ab0\tINFO\t" + good + "\n": true,
		"[INFO]\t" + good: true, "INFO " + good: false, "INFO\tx" + good: false, good + "\t" + good: false, "{\t" + good: false,
	} {
		if _, ok := ReadLogged(message); ok != want {
			t.Errorf("%s: %v", message, ok)
		}
	}
	if _, ok := Read("INFO\t" + good); ok {
		t.Error("a client's event may have fields before it")
	}
}

// Short documents that name the same members again and again make a bounded number of metrics.
func TestReadBounds(t *testing.T) {
	var sets, members strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&sets, `["a","b","k%d"],`, i)
		fmt.Fprintf(&members, `"k%d":"%[1]d",`, i)
	}
	value := strings.Repeat("x", 1000)
	message := document(`{"Namespace":"App","Dimensions":[`+strings.TrimSuffix(sets.String(), ",")+`],"Metrics":[{"Name":"n"}]}`, members.String()+`"n":1,"a":"`+value+`","b":"`+value+`"`)
	d, ok := Read(message)
	size := 0
	for _, m := range d.Metrics {
		size += len(m.Dimensions)
	}
	if !ok || len(d.Metrics) < 100 || size > maxEncoded+6*len(d.Metrics) {
		t.Errorf("%v, %d metrics with %d bytes of dimensions", ok, len(d.Metrics), size)
	}
	var names strings.Builder
	for i := range maxNames {
		fmt.Fprintf(&names, `{"Name":"m%d"},`, i)
		fmt.Fprintf(&members, `"m%d":1,`, i)
	}
	many := document(`{"Namespace":"App","Dimensions":[["a","b"],["a"],[]],"Metrics":[`+strings.TrimSuffix(names.String(), ",")+`]}`, members.String()+`"n":1,"a":"`+value+`","b":"`+value+`"`)
	size = 0
	d, ok = Read(many)
	for _, m := range d.Metrics {
		size += len(m.Dimensions)
	}
	if !ok || len(d.Metrics) != 2*maxNames || size > maxEncoded {
		t.Errorf("%v, %d metrics with %d bytes of dimensions", ok, len(d.Metrics), size)
	}
	message = strings.ReplaceAll(message, value, "x")
	if d, ok := Read(message); !ok || len(d.Metrics) != MaxMetrics {
		t.Errorf("%v, %d metrics", ok, len(d.Metrics))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(document(`{"Namespace":"App","Dimensions":[["a","b"],[]],"Metrics":[{"Name":"n","Unit":"Count","StorageResolution":1}]}`, `"n":[1,2],"a":"x","b":"y"`))
	f.Add("INFO\t" + document(`{"Namespace":"App","Metrics":[{"Name":"n"}]}`, `"n":1`))
	f.Fuzz(func(t *testing.T, message string) {
		d, ok := ReadLogged(message)
		if !ok && (d.Timed || len(d.Metrics) > 0) || len(d.Metrics) > MaxMetrics {
			t.Fatalf("%v: %v", ok, shown(d))
		}
		for _, m := range d.Metrics {
			if !metrics.ValidNamespace(m.Namespace) || !metrics.ValidName(m.Name) || len(m.Values) == 0 || len(m.Values) > maxValues {
				t.Errorf("%+v", m)
			}
			for _, v := range m.Values {
				if !metrics.ValidValue(v) {
					t.Errorf("%+v", m)
				}
			}
			names := map[string]bool{}
			for _, one := range metrics.SplitDimensions(m.Dimensions) {
				if !one.Valid() || names[one.Name] {
					t.Errorf("%+v", m)
				}
				names[one.Name] = true
			}
		}
	})
}

// Most events have no metrics, and PutLogEvents must not become slower by them.
func BenchmarkReadOthers(b *testing.B) {
	for name, message := range map[string]string{
		"text": strings.Repeat("GET /index.html 200 ", 50), "JSON": `{"level":"info","message":"` + strings.Repeat(`a\"b `, 200) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(message)))
			for b.Loop() {
				if _, ok := Read(message); ok {
					b.Fatal("it has metrics")
				}
			}
		})
	}
}

// A document whose sets name a long member again and again costs about as much as another of its length.
func BenchmarkReadRepeated(b *testing.B) {
	message := document(`{"Namespace":"App","Dimensions":[`+strings.Repeat(`["a"],`, 150_000)+`[]],"Metrics":[{"Name":"n"}]}`, `"n":1,"a":"`+strings.Repeat("x", 1024)+`"`)
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		if d, ok := Read(message); !ok || len(d.Metrics) == 0 {
			b.Fatal(ok, len(d.Metrics))
		}
	}
}
