package topic

import "time"

// MailConfirmationGap is the minimum time between two confirmation mails to the same address:
// the requester need not be its owner.
const MailConfirmationGap = time.Hour

// mailsPerSecond is how many mails a subscription gets in a second. Source: quotas in the
// SNS developer guide.
const mailsPerSecond = 10

// mailedOfLate reports that a pending subscription's confirmation was mailed so recently that
// it is not mailed again: its token stays valid.
func (sub *Subscription) mailedOfLate(now time.Time) bool {
	return sub.Protocol.Mail() && sub.confirmation != nil &&
		now.Before(sub.confirmation.Expires.Add(MailConfirmationGap-TokenLife))
}
