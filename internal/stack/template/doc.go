// Package template implements the language of CloudFormation's templates: their grammar, their
// functions, and the order of their resources by dependencies.
//
// [Parse] checks a template as far as possible without the values of its parameters,
// [Template.Bind] binds these, and the resulting [Bound] template resolves properties and
// outputs. A [Late] has the values that are known only once a resource is made.
//
// AWS's documentation is followed. Where it is silent:
//   - a map is a function if it has one member, with the name of a function;
//   - Fn::Equals compares values as texts;
//   - a DependsOn of a resource whose condition does not hold is ignored;
//   - patterns of parameters are Go's regular expressions: look-around and back references
//     are refused;
//   - the result of one evaluation is bounded, since nested Fn::Sub could make any amount.
package template
