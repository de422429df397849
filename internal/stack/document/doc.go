// Package document reads the text of a CloudFormation template, YAML or JSON, into a tree of
// nodes that know where they stand, so that every refusal can name its line and path.
//
// Templates are untrusted input: their size, the depth of their nesting and the number
// of their values are bounded, and so is the time that reading them takes. Short tags (!Ref,
// !GetAtt a.b) become the functions that they are short for. Aliases are refused, as AWS does.
package document
