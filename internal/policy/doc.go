// Package policy parses and evaluates IAM policy documents: those of resources, identities,
// boundaries and sessions, and trust policies of roles.
//
// A document is parsed once into a [Policy], which is immutable and may be shared. [Decide]
// decides a request by all the policies that apply to it, and returns the deciding statement
// and its kind of policy; it does no I/O and reads only the request. The package knows no
// service: the callers restrict the actions and resources of a policy, by [Policy.Statements].
//
// AWS's documentation is followed. Where it is silent, or only says what not to rely on:
//   - element names are case-sensitive, operators and condition keys are not;
//   - a principal of a whole account does not include services, and "*" is everybody,
//     including services, also in the form {"AWS":"*"}; federated callers of an identity
//     provider are allowed by the provider's name only, and denied by "*" as well;
//   - an operator without ForAllValues or ForAnyValue does not match a key with several
//     values, negated or not;
//   - a truth value that is neither true nor false reads as false; an IPv6 range with
//     bits set after its prefix contains no address;
//   - ? matches one unit of UTF-16, and so a character beyond the first 65,536 needs
//     two;
//   - a * in a Resource matches colons and slashes, in the operand of a condition only
//     those of the ARN's last part;
//   - a variable for which the request does not have a single value makes a text that
//     equals nothing; one without any value may have a default;
//   - an Allow of "*" is capped by boundary and session, like one that names a role.
package policy
