// Package policy reads and evaluates IAM policy documents: those that hang on a
// resource, on an identity, cap an identity or a session, and trust policies of roles.
//
// A document is parsed once into a [Policy], which does not change afterwards and may
// be shared. [Decide] decides a request by all the policies that apply to it, and tells
// which statement of which kind of policy did; it does no I/O and reads nothing but the
// request. The package knows no service: which actions and resources a policy may name
// is for those who accept it, by [Policy.Statements].
//
// What AWS documents is followed. Where it is silent, or says only what not to
// rely on:
//   - element names are exact, operators and condition keys are not
//     case-sensitive;
//   - a principal of a whole account is not a service, and "*" is everybody,
//     services included, in the form {"AWS":"*"} too; whom an identity provider vouches
//     for is let in by the provider's name only, and kept out by "*" as well;
//   - an operator without ForAllValues or ForAnyValue is not met by a key with several
//     values, be it negated or not;
//   - a truth value that is neither true nor false reads as false; a range of IPv6 with
//     bits set behind its prefix holds no address;
//   - ? stands for one unit of UTF-16, and so a character beyond the first 65,536 needs
//     two;
//   - a * in a Resource reaches over colons and slashes, in the operand of a condition
//     over those of the ARN's last part only;
//   - a variable that the request has no single value for makes a text that
//     equals nothing; one that it has no value for may have a default;
//   - an Allow of "*" is capped by boundary and session, as one that names a role is.
package policy
