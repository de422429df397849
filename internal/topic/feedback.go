package topic

import "strconv"

// Feedback says which deliveries over one protocol a topic's delivery status log has. If
// failures are logged, all of them are.
type Feedback struct {
	Success, Failure bool
	// Rate is the share of the successes that are logged, in percent: 0–100.
	Rate int
	// SuccessRole and FailureRole are the ARNs of the roles that log them.
	SuccessRole, FailureRole string
}

// feedbackNames are the protocols' parts of the attributes' names.
var feedbackNames = [...]string{SQS: "SQS", HTTP: "HTTP", HTTPS: "HTTP", Lambda: "Lambda", Application: "Application", Firehose: "Firehose"}

// Feedback reads the attributes …SuccessFeedbackRoleArn, …FailureFeedbackRoleArn and
// …SuccessFeedbackSampleRate. The default rate is 100: a role for successes is set in order to
// see them.
func (t *Topic) Feedback(p Protocol) (f Feedback) {
	if len(t.attributes) == 0 || int(p) >= len(feedbackNames) || feedbackNames[p] == "" {
		return f
	}
	name := feedbackNames[p]
	f.SuccessRole, f.FailureRole = t.attributes[name+"SuccessFeedbackRoleArn"], t.attributes[name+"FailureFeedbackRoleArn"]
	f.Success, f.Failure = f.SuccessRole != "", f.FailureRole != ""
	f.Rate = 100
	if rate, ok := t.attributes[name+"SuccessFeedbackSampleRate"]; ok {
		f.Rate, _ = strconv.Atoi(rate) // checked when it was set
	}
	return f
}
