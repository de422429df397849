// sns-validator: checks the signature of a message of SNS, with the certificate
// that the message names, which it fetches by https.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import MessageValidator from 'sns-validator';

// The server's address: for this test, and as its messages name it.
const endpoint = process.env.AWS_ENDPOINT_URL;
const shown = new URL(process.env.GODWIT_PUBLIC_URL);
const validator = new MessageValidator(new RegExp(`^${shown.host.replaceAll('.', '\\.')}$`));

const validate = (message) => new Promise((resolve, reject) => {
  validator.validate(message, (err, valid) => (err ? reject(err) : resolve(valid)));
});

/** Calls an action of SNS and returns the text of the answer's element. */
async function call(Action, parameters, element) {
  const body = new URLSearchParams({ Action, Version: '2010-03-31', ...parameters });
  const answer = await fetch(endpoint, { method: 'POST', body });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return element && text.match(new RegExp(`<${element}>(.*?)</${element}>`))[1];
}

// A web hook, which hands out what comes to it.
const came = [];
const waiting = [];
const hook = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    response.end();
    const body = Buffer.concat(chunks).toString();
    if (waiting.length > 0) waiting.shift()(body);
    else came.push(body);
  });
});
const next = () => new Promise((resolve) => {
  if (came.length > 0) resolve(came.shift());
  else waiting.push(resolve);
});
before(() => new Promise((resolve) => { hook.listen(0, '127.0.0.1', resolve); }));
after(() => { hook.close(); hook.closeAllConnections(); });

for (const version of ['1', '2']) {
  test(`messages are valid, signature version ${version}`, async () => {
    const TopicArn = await call('CreateTopic', { Name: `validated-${version}` }, 'TopicArn');
    await call('SetTopicAttributes', { TopicArn, AttributeName: 'SignatureVersion', AttributeValue: version });
    await call('Subscribe', { TopicArn, Protocol: 'http', Endpoint: `http://127.0.0.1:${hook.address().port}/` });
    const confirmation = await validate(await next());
    assert.equal(confirmation.Type, 'SubscriptionConfirmation');
    assert.equal(confirmation.SignatureVersion, version);
    assert.equal((await fetch(confirmation.SubscribeURL)).status, 200);

    for (const Subject of [undefined, 'é <subject>']) {
      const Message = 'é "quoted"\n<&>\u2028';
      await call('Publish', { TopicArn, Message, ...(Subject && { Subject }) });
      const body = await next();
      const message = await validate(body);
      assert.deepEqual([message.Message, message.Subject, message.SignatureVersion], [Message, Subject, version]);
      const forged = { ...JSON.parse(body), Message: 'forged' };
      await assert.rejects(validate(forged), { message: 'The message signature is invalid.' });
      // An UnsubscribeConfirmation comes too, but this validator leaves its Token
      // out of what is signed, against the developer guide.
      if (Subject) assert.equal((await fetch(message.UnsubscribeURL)).status, 200);
    }
    assert.equal(JSON.parse(await next()).Type, 'UnsubscribeConfirmation');
  });
}
