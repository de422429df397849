// Package metricmath has the language of CloudWatch's metric math: it parses the expressions
// among queries for metrics, and evaluates them. It is pure: datapoints are inputs. Source: "Using
// math expressions with CloudWatch metrics".
package metricmath

import (
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/metricmath/search"
)

// MaxExpression is the length of the longest expression, in characters. Source: the API model.
const MaxExpression = 2048

// maxDepth bounds how deep the parts of an expression are nested. It is out of reach of what
// people write, and bounds the results that are pending at once.
const maxDepth = 100

// maxParts bounds the numbers, names and operators in all expressions of a program together,
// and with them its memory. It is out of reach, too.
const maxParts = 50_000

// MaxSearches is how many times SEARCH may be in the expressions of a program, as each looks at all
// metrics. Source: "Search expression limits", for a graph.
const MaxSearches = 100

// fallbackSearchPeriod is the period in seconds of a SEARCH that says none, in a query without one.
const fallbackSearchPeriod = 300

// Why expressions are refused. The first field of each is the query's Id.
var (
	ErrSyntax      = fault.NewRule(fault.ValidationFailed, "metricmath: syntax")
	ErrFunction    = fault.NewRule(fault.ValidationFailed, "metricmath: unknown function") // its name
	ErrUnsupported = fault.NewRule(fault.ValidationFailed, "metricmath: unsupported")      // the function
	ErrInsights    = fault.NewRule(fault.ValidationFailed, "metricmath: Metrics Insights")
	ErrUnknown     = fault.NewRule(fault.ValidationFailed, "metricmath: unknown Id") // the Id
	ErrCycle       = fault.NewRule(fault.ValidationFailed, "metricmath: cycle")
	ErrArguments   = fault.NewRule(fault.ValidationFailed, "metricmath: arguments") // the function
	ErrOperands    = fault.NewRule(fault.ValidationFailed, "metricmath: operands")  // the operator
	ErrElements    = fault.NewRule(fault.ValidationFailed, "metricmath: elements of an array")
	ErrSearch      = fault.NewRule(fault.ValidationFailed, "metricmath: text of a search")
	ErrSearches    = fault.NewRule(fault.ValidationFailed, "metricmath: too many searches") // the limit
	ErrSearched    = fault.NewRule(fault.ValidationFailed, "metricmath: too much to search")
	ErrScalar      = fault.NewRule(fault.ValidationFailed, "metricmath: scalar result")
	ErrDepth       = fault.NewRule(fault.ValidationFailed, "metricmath: nested too deep") // the limit
	ErrParts       = fault.NewRule(fault.ValidationFailed, "metricmath: too many parts")  // the limit
	ErrDatapoints  = fault.NewRule(fault.ValidationFailed, "metricmath: too many datapoints")
)

// Query is a metric, or an expression on the results of other queries.
type Query struct {
	ID string
	// Expression is empty for a metric.
	Expression string
	// Label is the label of a metric; of an expression it may be empty.
	Label string
	// Period is in seconds; 0: an expression has none of its own.
	Period int64
}

// Point is a datapoint. At is the beginning of its period, in epoch seconds.
type Point struct {
	At    int64
	Value float64
}

// Series is a time series. Its points are finite, in ascending order, and not modified.
type Series struct {
	Label  string
	Period int64 // seconds
	Points []Point
	// Of tells what the series is of, in numbers of those who evaluate; 0: it is not told, as of what
	// several series make.
	Of int
}

// Search is a SEARCH in an expression.
type Search struct {
	*search.Search
	Query     int    // the place of the query
	Statistic string // as it stands
	Period    int64  // seconds, of any number
}
