// An SMSC of npm's smpp. It tells what it was sent in lines of JSON, and does what lines on
// its input say.
import { createInterface } from 'node:readline';
import smpp from 'smpp';

const tell = (event) => console.log(JSON.stringify(event));
let throttle = 1; // submits that are refused for now
let last;

const server = smpp.createServer({}, (session) => {
  session.on('error', () => {});
  session.on('bind_transceiver', (pdu) => {
    const known = pdu.system_id === 'godwit' && pdu.password === 's3cr3t';
    session.send(pdu.response({ command_status: known ? smpp.ESME_ROK : smpp.ESME_RBINDFAIL }));
    last = session;
    tell({ event: 'bind', known, version: pdu.interface_version });
  });
  session.on('submit_sm', (pdu) => {
    if (throttle-- > 0) {
      session.send(pdu.response({ command_status: smpp.ESME_RTHROTTLED }));
      tell({ event: 'throttled' });
      return;
    }
    session.send(pdu.response({ message_id: 'id' }));
    const { message, udh } = pdu.short_message;
    tell({
      event: 'submit', from: pdu.source_addr, to: pdu.destination_addr, ton: pdu.dest_addr_ton, coding: pdu.data_coding,
      receipt: pdu.registered_delivery, text: String(message), header: udh ? Buffer.from(Array.isArray(udh) ? udh[0] : udh).toString('hex') : '',
    });
    if (String(message).startsWith('receipt')) {
      session.deliver_sm({
        esm_class: 4, source_addr_ton: 1, source_addr_npi: 1, source_addr: pdu.destination_addr, destination_addr: '123',
        short_message: 'id:id sub:001 dlvrd:001 submit date:2611230700 done date:2611230701 stat:DELIVRD err:000 text:',
      }, (answer) => tell({ event: 'receipted', status: answer.command_status }));
    }
  });
  session.on('enquire_link', (pdu) => session.send(pdu.response()));
  session.on('unbind', (pdu) => { session.send(pdu.response()); tell({ event: 'unbind' }); session.close(); });
});

server.listen(0, '127.0.0.1', () => tell({ event: 'listening', port: server.address().port }));

createInterface({ input: process.stdin }).on('line', (from) => {
  last.deliver_sm({ source_addr_ton: 1, source_addr_npi: 1, source_addr: from, destination_addr: '123', short_message: 'STOP' }, (pdu) => {
    tell({ event: 'delivered', status: pdu.command_status });
  });
}).on('close', () => process.exit(0));
