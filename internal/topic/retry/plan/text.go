package plan

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/topic/retry"
)

// barWidth is the length of the longest bar, in columns.
const barWidth = 21

// Text writes the policy's phases, and its schedule with a bar for each delay. It
// fits into 80 columns.
func (p Plan) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n\n", p.Name, p.summary())
	for _, ph := range phasesOf(p.Policy) {
		fmt.Fprintf(&out, "  %-12s  %15s  %s\n", ph.phase, counted(ph.retries, "retry", "retries"), ph.words)
	}
	if p.MaxReceivesPerSecond > 0 {
		fmt.Fprintf(&out, "  %-12s  %15s  at most, retries included\n", "throttle", fmt.Sprintf("%s/s", thousands(p.MaxReceivesPerSecond)))
	}
	steps := stepsOf(p.Policy)
	if len(steps) > 0 {
		longest := time.Duration(0)
		rows := [][]string{{"retry", "phase", "delay", "made after", ""}}
		for i := range steps {
			longest = max(longest, steps[i].delay)
		}
		for i := range steps {
			s := &steps[i]
			number, when := thousands(s.first), moment(s.from)
			if s.count() > 1 {
				number += "–" + thousands(s.last)
				if s.until != s.from {
					when += " – " + moment(s.until)
				}
			}
			rows = append(rows, []string{number, s.phase.String(), seconds(s.delay), when, bar(s.delay, longest)})
		}
		out.WriteByte('\n')
		table(&out, rows, "><><<")
		out.WriteString("\nTimes are without jitter, and without what the attempts themselves take.\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// bar draws a delay in eighths of a column.
func bar(d, longest time.Duration) string {
	if longest == 0 || d == 0 {
		return ""
	}
	n := max(int(float64(d)/float64(longest)*barWidth*8+0.5), 1)
	out := strings.Repeat("█", n/8)
	if rest := n % 8; rest > 0 {
		out += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return out
}

// table writes rows in columns, each aligned to the left (<) or to the right (>).
func table(out *strings.Builder, rows [][]string, align string) {
	widths := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if align[i] == '>' {
				line.WriteString("  " + pad + cell)
			} else {
				line.WriteString("  " + cell + pad)
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// The example for comparing the backoff functions.
var example = retry.Policy{NumRetries: 10, MinDelayTarget: 5 * time.Second, MaxDelayTarget: 260 * time.Second}

var functions = []retry.Backoff{retry.Linear, retry.Arithmetic, retry.Geometric, retry.Exponential}

// FunctionsText writes a table of the delays of the four backoff functions.
func FunctionsText(w io.Writer) error {
	rows := [][]string{{"retry"}}
	for _, f := range functions {
		rows[0] = append(rows[0], f.String())
	}
	for i := range example.NumRetries {
		row := []string{fmt.Sprint(i + 1)}
		for _, f := range functions {
			p := example
			p.Backoff = f
			d, _ := p.Delay(i)
			row = append(row, seconds(d))
		}
		rows = append(rows, row)
	}
	var out strings.Builder
	out.WriteString(functionsTitle + "\n" + functionsSubtitle + "\n\n")
	table(&out, rows, ">>>>>")
	_, err := io.WriteString(w, out.String())
	return err
}

const (
	functionsTitle    = "The four backoff functions"
	functionsSubtitle = "delays of a backoff phase of 10 retries, 5 s to 260 s"
)
