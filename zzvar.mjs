import { App, us_socket_local_port } from 'uWebSockets.js'
import { Exchange } from './dist/http/exchange.js'
import { ChallengeEndpoint } from './dist/endpoints/challenge.js'
import { Keyring } from './dist/domain/keyring.js'
import { FingerprintWatch } from './dist/domain/fingerprints.js'
import { LoadTracker } from './dist/store/load-tracker.js'
import { BridgedStore } from './dist/store/bridge.js'
import { AddressSet } from './dist/domain/address.js'
import { compileSite, SITE_DEFAULTS } from './dist/domain/site.js'
import { CONTRACT_LIMITS } from './dist/domain/limits.js'
const mode = process.argv[2]
const siteKey='site_0123456789ABCDEFabcdef'
const site = compileSite({...SITE_DEFAULTS, siteKey, name:'', origins:['https://shop.example'], ipRules:{allow:[],block:[]}, createdAt:0, updatedAt:0})
const kr = new Keyring(['a secret of more than thirty-two characters'])
let queue=[]
const flush=()=>{const q=queue; queue=[]; for(const f of q) f()}
const defer=f=>{ if(queue.length===0) setImmediate(flush); queue.push(f) }
const sync=f=>f()
const put = mode==='sync'? sync: defer
const store={ mayBeBridged:true, addressEpoch:()=>7, siteEpoch:()=>7, admitChallenge:(r,done)=>put(()=>done({status:'admitted',siteCount:0,failures:0})), exchangeLoad: async()=>[] }
let real
if(mode.startsWith('redis')){ const {RedisStore}=await import('./dist/store/redis/store.js'); const {parseRedisUrl}=await import('./dist/store/redis/connection.js'); real=new RedisStore({target:parseRedisUrl(process.argv[3]),keyPrefix:'powgate',deadlineMs:2000,openMs:3000}); await real.open() }
if(mode.startsWith('emb')){ const {EmbeddedStore}=await import('./dist/store/embedded/store.js'); const fs=await import('node:fs'); real=new EmbeddedStore({dataDir:fs.mkdtempSync('/tmp/powe-'),bytesMax:2**32,sweeps:false}) }
const sites=new Map([[siteKey,site]])
const service={ settings:{limits:CONTRACT_LIMITS, challengeLifetimeMs:600000, tokenLifetimeMs:300000, bodyBytesMax:8192, ipv6PrefixBits:64}, keyring:kr,
  store:new BridgedStore(real??store,{workers:1,bridgesChallenge:false,bridgesVerify:false,monotonicMs:()=>performance.now(),wallMs:Date.now}),
  sites:{cachedSite:k=>sites.get(k), loadSite(){}}, loads:new LoadTracker(store,()=>performance.now()), fingerprints:new FingerprintWatch(2), now:Date.now, randomBits:()=>5, events:{refused(e,r){throw new Error(r)},failed(){throw new Error('failed')}} }
const host={trustedProxies:new AddressSet(['127.0.0.1/32']),isDraining:false,underWay:0,onFault:e=>{throw e}}
const endpoint=new ChallengeEndpoint(service); const rules={isCrossOrigin:true,faultReply:endpoint.faultReply}; const handle=e=>endpoint.handle(e)
const body='x'.repeat(114)
const app=App()
const BLOCK='application/json\r\nCache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy'
let sink=0
if(mode==='bare') app.any('/*',res=>res.end(body))
else if(mode==='headers') app.any('/*',(res,req)=>{ sink+=req.getHeader('x-site-key').length+req.getHeader('origin').length; res.writeHeader('Content-Type',BLOCK); res.end(body)})
else if(mode==='addr') app.any('/*',(res,req)=>{ sink+=req.getHeader('x-site-key').length+req.getHeader('origin').length; sink+=res.getRemoteAddress().byteLength; res.writeHeader('Content-Type',BLOCK); res.end(body)})
else if(mode==='foreach') app.any('/*',(res,req)=>{ sink+=req.getHeader('x-site-key').length+req.getHeader('origin').length; sink+=res.getRemoteAddress().byteLength; let j=''; req.forEach((n,v)=>{ if(n==='x-forwarded-for') j=v}); sink+=j.length; res.writeHeader('Content-Type',BLOCK); res.end(body)})
else if(mode==='exch') app.any('/*',(res,req)=>{ const e=new Exchange(res,req,host,rules); e.answer({status:200,body,headers:[]}) })
else if(mode==='exchdefer') app.any('/*',(res,req)=>{ const e=new Exchange(res,req,host,rules); defer(()=>e.answer({status:200,body,headers:[]})) })
else app.any('/*',(res,req)=>{ const e=new Exchange(res,req,host,rules); e.run(handle,e) })
app.listen('127.0.0.1',0,s=>process.send(us_socket_local_port(s)))
process.on('disconnect',()=>process.exit())
