// Package sam expands templates of the Serverless Application Model: functions with the role,
// the permissions, the subscriptions and the event source mappings that they ask for in a line
// each. Logical ids are those that AWS's transform gives, since templates name them.
//
// Functions are what there is, with events of queues and topics. Other types and events are
// refused by name.
package sam
