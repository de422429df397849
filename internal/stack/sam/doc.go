// Package sam expands templates of the Serverless Application Model: functions with the role,
// the permissions, the subscriptions and the event source mappings that they request in a line
// each. Logical ids are those of AWS's transform, since templates reference them.
//
// Only functions are supported, with events of queues and topics. Other types and events are
// refused by name.
package sam
