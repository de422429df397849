package document

import "godwit.dev/godwit/internal/fault"

// The errors of templates' texts, with the fields of each.
var (
	ErrTooLong       = fault.NewRule(fault.ValidationFailed, "document: too long") // the limit in bytes
	ErrStructure     = fault.NewRule(fault.ValidationFailed, "document: no map, or no text")
	ErrNull          = fault.NewRule(fault.ValidationFailed, "document: a null")             // its path
	ErrTooManyValues = fault.NewRule(fault.ValidationFailed, "document: too many values")    // the limit
	ErrTooDeep       = fault.NewRule(fault.ValidationFailed, "document: nested too deep")    // the limit
	ErrJSON          = fault.NewRule(fault.ValidationFailed, "document: no JSON")            // the line, the column
	ErrYAML          = fault.NewRule(fault.ValidationFailed, "document: no YAML")            // nowhere in particular
	ErrYAMLLine      = fault.NewRule(fault.ValidationFailed, "document: no YAML in a line")  // the line
	ErrYAMLColumn    = fault.NewRule(fault.ValidationFailed, "document: no YAML at a place") // the line, the column
	ErrAlias         = fault.NewRule(fault.ValidationFailed, "document: an alias of YAML")
	ErrNoText        = fault.NewRule(fault.ValidationFailed, "document: a member is no text") // the member's name
)

// Refusal is an error in a template, or in its inputs.
type Refusal struct {
	Line int    // from 1; 0 without a position
	Path string // as /Resources/Queue; empty without a position
	Err  error  // a rule, with its fields
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns what is wrong.
func (r *Refusal) Unwrap() error { return r.Err }

// Refuse refuses a node by a rule; nil: the template as a whole.
func (n *Node) Refuse(err error) *Refusal {
	if n == nil {
		return &Refusal{Err: err}
	}
	return &Refusal{Line: n.Line, Path: n.Path(), Err: err}
}
