// Package template has the language of CloudFormation's templates: what they may say, what
// their functions give, and in which order their resources depend on each other.
//
// [Parse] checks a template as far as it can be without the values of its parameters, [Template.Bind]
// gives it these, and the [Bound] template that comes of it resolves properties and outputs. What
// is known only once a resource is made comes from a [Late].
//
// What AWS documents is followed. Where it is silent:
//   - a map is a function if it has one member, by the name of a function;
//   - values are compared by Fn::Equals as texts;
//   - a DependsOn of a resource whose condition does not hold is no dependency;
//   - patterns of parameters are Go's regular expressions: look-around and back references
//     are refused;
//   - what one evaluation makes is bounded, since nested Fn::Sub could make any amount.
package template
