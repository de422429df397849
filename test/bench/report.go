package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is a result as a person reads it.
type table struct {
	title  string
	note   string // how the figures came about
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// addLoads adds a row for each result under one load, its CPU beside that of base.
func (t *table) addLoads(batch, width int, results []result, base result) {
	for _, x := range results {
		t.add(strconv.Itoa(batch), strconv.Itoa(width), x.name, figure(x.ServerCPU), figure(ratio(x.ServerCPU, base.ServerCPU)),
			figure(x.Throughput), figure(x.P50), figure(x.P99))
	}
}

// verdict is a result against its target.
type verdict struct {
	What string `json:"what"`
	Met  bool   `json:"met"`
	Says string `json:"says"`
}

// record is one sample as --json writes it.
type record struct {
	Scenario string             `json:"scenario"`
	Case     string             `json:"case"`
	Server   string             `json:"server"`
	Round    int                `json:"round"`
	Sample   sample             `json:"sample"`
	More     map[string]float64 `json:"more,omitempty"`
}

// report is everything that a run has found out.
type report struct {
	Facts    []string  `json:"facts"`
	Records  []record  `json:"records"`
	Verdicts []verdict `json:"verdicts"`

	tables []*table
}

// text writes aligned columns, or Markdown.
func (r *report) text(w io.Writer, markdown bool) {
	for _, fact := range r.Facts {
		if markdown {
			fmt.Fprint(w, "- ")
		}
		fmt.Fprintln(w, fact)
	}
	for _, t := range r.tables {
		t.write(w, markdown)
	}
	if len(r.Verdicts) == 0 {
		return
	}
	t := &table{title: "Against the targets", header: []string{"target", "", "measured"}}
	for _, v := range r.Verdicts {
		met := "MISSED"
		if v.Met {
			met = "met"
		}
		t.add(v.What, met, v.Says)
	}
	t.write(w, markdown)
}

func (t *table) write(w io.Writer, markdown bool) {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(cells []string) {
		var b strings.Builder
		for i, cell := range cells {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if isNumber(cell) {
				cell = padding + cell
			} else {
				cell += padding
			}
			if markdown {
				b.WriteString("| " + cell + " ")
			} else {
				b.WriteString(cell + "  ")
			}
		}
		if markdown {
			b.WriteString("|")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if markdown {
		fmt.Fprintf(w, "\n### %s\n\n", t.title)
	} else {
		fmt.Fprintf(w, "\n%s\n", t.title)
	}
	if t.note != "" {
		fmt.Fprintln(w, t.note)
		if markdown {
			fmt.Fprintln(w)
		}
	}
	line(t.header)
	if markdown {
		rules := make([]string, len(t.header))
		for i, width := range widths {
			rules[i] = strings.Repeat("-", max(width, 3))
			widths[i] = max(width, 3)
		}
		fmt.Fprintln(w, "| "+strings.Join(rules, " | ")+" |")
	}
	for _, row := range t.rows {
		line(row)
	}
}

func isNumber(cell string) bool {
	return cell == unknown || cell != "" && strings.Trim(cell, "0123456789.") == ""
}

// unknown stands where there is no figure.
const unknown = "–"

// figure prints a number with three digits that count.
func figure(v float64) string {
	switch {
	case v <= 0:
		return unknown
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// The section of a document that fill replaces stands between these lines.
const (
	fillBegin = "<!-- bench:begin -->"
	fillEnd   = "<!-- bench:end -->"
)

// fill puts results into the document at path, between the markers.
func fill(path string, results string) error {
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled, err := between(string(doc), results)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}

func between(doc, results string) (string, error) {
	head, rest, ok := strings.Cut(doc, fillBegin)
	_, foot, closed := strings.Cut(rest, fillEnd)
	if !ok || !closed {
		return "", fmt.Errorf("no lines %s and %s", fillBegin, fillEnd)
	}
	return head + fillBegin + "\n\n" + strings.TrimSpace(results) + "\n\n" + fillEnd + foot, nil
}

func writeJSON(path string, r *report) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
