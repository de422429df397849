package config

import "net/url"

func (c *Config) checkPush(check checkFunc) {
	for flag, gateway := range sorted(map[string]string{
		"push-apns-url": c.PushAPNsURL, "push-apns-sandbox-url": c.PushAPNsSandboxURL, "push-fcm-url": c.PushFCMURL,
	}) {
		u, err := url.Parse(gateway)
		check(gateway == "" || err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
			(u.Scheme == "https" || u.Scheme == "http" && !c.Production), flag, "want https://HOST[:PORT], have %q", gateway)
	}
}
