package decimal

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "-1": -1, "+2.50": 2.5, ".5": 0.5, "5.": 5, "1e3": 1000, "25E-1": 2.5} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "e", "1e", "1 ", "1_0", "0x10", "0x1p4", "inf", "Infinity", "NaN", "1e999", "1.2.3", "--1", "१"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
