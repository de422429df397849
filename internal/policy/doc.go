// Package policy reads and evaluates IAM policy documents that hang on a
// resource: who may call which actions on it, under which conditions.
//
// A document is parsed once into a [Policy], which does not change afterwards
// and may be shared; evaluating it does no I/O and reads nothing but the
// request. The package knows no service: which actions and resources a policy
// may name is for those who accept it, by [Policy.Statements].
//
// What AWS documents is followed. Where it is silent, or says only what not to
// rely on:
//   - element names are exact, operators and condition keys are not
//     case-sensitive;
//   - a principal of a whole account is not a service, and "*" is everybody,
//     services included, in the form {"AWS":"*"} too;
//   - an operator without ForAllValues or ForAnyValue on a key with several
//     values is met by any of them, a negated one by none of them;
//   - a variable that the request has no single value for makes a text that
//     equals nothing.
package policy
