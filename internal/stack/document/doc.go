// Package document parses the text of a CloudFormation template, YAML or JSON, into a tree of
// nodes with their positions, so that every error can name its line and path.
//
// Templates are untrusted input: their size, their nesting, the number of their values and the
// time to parse them are bounded. Short tags (!Ref, !GetAtt a.b) become the functions that they
// abbreviate. Aliases are refused, as by AWS.
package document
