package cloudwatch

import (
	"math"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
)

func dimension(name, value string) Dimension { return Dimension{&name, &value} }

// TestReadDimensions: the order of dimensions does not count, and what is refused.
func TestReadDimensions(t *testing.T) {
	a, err := readDimensions("Dimensions", []Dimension{dimension("b", "2"), dimension("a", "1")})
	b, other := readDimensions("Dimensions", []Dimension{dimension("a", "1"), dimension("b", "2")})
	if err != nil || other != nil || a != b || a == "" {
		t.Errorf("%q and %q: %v, %v", a, b, err, other)
	}
	if shown := showDimensions(a); len(shown) != 2 || *shown[0].Name != "a" || *shown[1].Value != "2" {
		t.Errorf("they are shown as %v", shown)
	}
	for name, all := range map[string][]Dimension{
		"more than 30":      make([]Dimension, maxDimensions+1),
		"no name":           {{Value: new(string)}},
		"an empty value":    {dimension("a", "")},
		"a blank value":     {dimension("a", " ")},
		"a colon":           {dimension(":a", "1")},
		"beyond ASCII":      {dimension("ä", "1")},
		"a long name":       {dimension(strings.Repeat("n", metrics.MaxDimensionName+1), "1")},
		"a long value":      {dimension("a", strings.Repeat("v", metrics.MaxDimensionValue+1))},
		"a name twice":      {dimension("a", "1"), dimension("a", "2")},
		"control character": {dimension("a\x01", "1")},
	} {
		if _, err := readDimensions("Dimensions", all); err == nil || fault.KindOf(err) == fault.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadPeriod(t *testing.T) {
	for _, period := range []int{1, 5, 10, 20, 30, 60, 120, 86400} {
		if got, err := readPeriod("Period", period); err != nil || got != int64(period) {
			t.Errorf("%d: %d, %v", period, got, err)
		}
	}
	for _, period := range []int{-60, 0, 2, 15, 45, 61, 90} {
		if _, err := readPeriod("Period", period); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("%d: %v", period, err)
		}
	}
}

func TestCheckValue(t *testing.T) {
	for _, value := range []float64{0, 1, -1, metrics.Smallest, -metrics.Largest} {
		if err := checkValue("Value", value); err != nil {
			t.Errorf("%v: %v", value, err)
		}
	}
	for _, value := range []float64{math.NaN(), math.Inf(1), metrics.Smallest / 2, -2 * metrics.Largest} {
		if err := checkValue("Value", value); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("%v: %v", value, err)
		}
	}
}

// TestShown writes numbers as AWS's messages do.
func TestShown(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", -1: "-1", 999: "999", 1000: "1,000", -123456.75: "-123,456.75", 0.0625: "0.062", 1e-300: "0", -1e-300: "-0",
		1.5: "1.5", 2 * metrics.Largest: "4,697,085,165,547,666,500" + strings.Repeat(",000", 30),
		math.Inf(1): "∞", math.Inf(-1): "-∞",
	} {
		if got := shown(value); got != want {
			t.Errorf("%v: %s, want %s", value, got, want)
		}
	}
	if got := shown(math.NaN()); got != "NaN" {
		t.Error(got)
	}
}

func TestCheckNamespace(t *testing.T) {
	for text, kind := range map[string]fault.Kind{
		"AWS/SQS": fault.Internal, "": fault.InvalidParameter, ":mine": fault.InvalidParameter, "ä": fault.InvalidParameter,
		strings.Repeat("n", maxName): fault.Internal, strings.Repeat("n", maxName+1): fault.InvalidParameter,
	} {
		if err := checkNamespace("Namespace", &text); fault.KindOf(err) != kind || (err == nil) != (kind == fault.Internal) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if err := checkNamespace("Namespace", nil); fault.KindOf(err) != fault.MissingParameter {
		t.Error(err)
	}
}
