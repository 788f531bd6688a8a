/**
 * Entry for hard challenges: searches on the visitor's GPU, beside the threads. It runs in the page and not in a worker, because only
 * the page knows whether it is hidden, and the page's elements share one device.
 */

import { GPU_START, proofInput } from '../protocol/proof.ts'
import { nowMs, sleep, unclobbered } from './dom.ts'
import { difficultyMask } from './solver/block.ts'
import type { Job } from './solver/job.ts'
import { digestWords, INITIAL_STATE, paddedWords, ROUND_CONSTANTS, round } from './solver/sha256.ts'
import {
  BUFFER,
  COMMON_COUNTERS,
  COMMON_ROUNDS,
  COUNTERS_PER_GROUP,
  NOT_FOUND,
  shaderText,
} from './solver/shader.ts'

/** The aim for a dispatch: in each frame of 16 ms, the GPU has time left to draw. */
const DISPATCH_MS = 10
const DISPATCH_GROWTH_MAX = 4
/** At least this share of a dispatch's time counts as work, the rest as latency. */
const WORK_SHARE_MIN = 1 / 4
const HIDDEN_POLL_MS = 250
/** A device is closed after this time without a search, because an open one keeps some cards from sleeping. */
const IDLE_MS = 10_000

/** Values of GPUBufferUsage and GPUMapMode (WebGPU), for which TypeScript's library has no constants. */
const [MAP_READ, COPY_SRC, COPY_DST, STORAGE, READ] = [0x1, 0x4, 0x8, 0x80, 0x1]

interface Gpu {
  readonly device: GPUDevice
  readonly pipeline: GPUComputePipeline
  /** Workgroups of the next dispatch. */
  groups: number
  /** The time of the shortest dispatch so far, in some browsers mostly a wait for the answer. */
  latencyMs: number
}

/** The page's device, open while a search runs and for IDLE_MS after it. */
let opened: Promise<Gpu> | undefined
let runningSearches = 0
let idleTimer: ReturnType<typeof setTimeout> | undefined

/**
 * @param allowed `software`, for tests, allows a GPU in software too
 * @param goesOn called with the number of tries so far; the search ends if it returns false
 * @param start a multiple of COUNTERS_PER_GROUP
 * @throws Error if there is no GPU, it fails, or the search ends
 */
export async function search(
  job: Pick<Job, 'nonce' | 'difficulty'>,
  allowed: string,
  goesOn: (tries: number) => boolean,
  start = GPU_START,
): Promise<number> {
  clearTimeout(idleTimer)
  opened ??= open(allowed === 'software')
  runningSearches++
  try {
    return await searchOn(await opened, job, goesOn, start)
  } finally {
    if (--runningSearches === 0) idleTimer = setTimeout(close, IDLE_MS)
  }
}

function close(): void {
  opened?.then(({ device }) => device.destroy()).catch(() => {})
  opened = undefined
}

/** Reads nothing of the adapter except whether it is software. */
async function open(allowsSoftware: boolean): Promise<Gpu> {
  const { gpu } = navigator
  const adapter = (await gpu.requestAdapter({ powerPreference: 'low-power' })) ?? (await gpu.requestAdapter())
  if (adapter === null) throw new Error('no GPU')
  // Browsers before 2025 have it in the adapter itself.
  const { isFallbackAdapter = adapter.info.isFallbackAdapter } = adapter as { isFallbackAdapter?: boolean }
  if (isFallbackAdapter && !allowsSoftware) throw new Error('no GPU but in software')
  const device = await adapter.requestDevice()
  const module = device.createShaderModule({ code: shaderText() })
  const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module } })
  return { device, pipeline, groups: 1, latencyMs: Number.POSITIVE_INFINITY }
}

async function searchOn(
  gpu: Gpu,
  { nonce, difficulty }: Pick<Job, 'nonce' | 'difficulty'>,
  goesOn: (tries: number) => boolean,
  start: number,
): Promise<number> {
  const mask = difficultyMask(difficulty)
  const dispatch = dispatcher(gpu, nonce, mask)
  const page = unclobbered(document)
  for (let next = start; ; ) {
    if (!goesOn(next - start)) throw new Error('the search is over')
    if (page.hidden) {
      // Polls instead of waiting for an event, because a search that ends meanwhile must close the device.
      await sleep(HIDDEN_POLL_MS)
      continue
    }
    const commonLeft = COMMON_COUNTERS - (next % COMMON_COUNTERS)
    const groups = Math.min(gpu.groups, commonLeft / COUNTERS_PER_GROUP)
    const beganMs = nowMs()
    const found = await dispatch(next, groups)
    const dispatchMs = nowMs() - beganMs
    if (found !== NOT_FOUND) {
      const counter = next + found
      if (digestWords(proofInput(nonce, counter))[0]! & mask) throw new Error('a wrong counter')
      goesOn(counter - start + 1)
      return counter
    }
    next += groups * COUNTERS_PER_GROUP
    gpu.latencyMs = Math.min(gpu.latencyMs, dispatchMs)
    // With a coarse clock, the shortest dispatch may have seemed as long as this one, which would leave no time for work.
    const workMs = Math.max(dispatchMs - gpu.latencyMs, dispatchMs * WORK_SHARE_MIN)
    const groupsWanted = Math.floor((groups * DISPATCH_MS) / workMs)
    gpu.groups = Math.max(1, Math.min(DISPATCH_GROWTH_MAX * groups, groupsWanted))
  }
}

/** Tries COUNTERS_PER_GROUP counters a group, from `start` on. Returns the offset of the first that meets the mask, or NOT_FOUND. */
type Dispatch = (start: number, groups: number) => Promise<number>

function dispatcher({ device, pipeline }: Gpu, nonce: string, mask: number): Dispatch {
  const words = new Int32Array(BUFFER.size)
  const size = words.byteLength
  const buffer = device.createBuffer({ size, usage: STORAGE | COPY_DST | COPY_SRC })
  const answer = device.createBuffer({ size: 4, usage: MAP_READ | COPY_DST })
  const layout = pipeline.getBindGroupLayout(0)
  const bindGroup = device.createBindGroup({ layout, entries: [{ binding: 0, resource: { buffer } }] })
  // COMMON_COUNTERS counters have the same first digits, hence the same COMMON_ROUNDS first words, so those rounds are done here.
  // The shader gets `words` as BUFFER tells (solver/shader.ts): mask, first and found are neighbours.
  return async (start, groups) => {
    const input = paddedWords(proofInput(nonce, start)).subarray(0, COMMON_ROUNDS)
    const state = Int32Array.from(INITIAL_STATE)
    for (const [t, word] of input.entries()) round(state, ROUND_CONSTANTS[t]! + word)
    words.set(state, BUFFER.state)
    words.set(input, BUFFER.input)
    words.set([mask, start % COMMON_COUNTERS, NOT_FOUND], BUFFER.mask)
    device.queue.writeBuffer(buffer, 0, words)
    const encoder = device.createCommandEncoder()
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, bindGroup)
    pass.dispatchWorkgroups(groups)
    pass.end()
    encoder.copyBufferToBuffer(buffer, 4 * BUFFER.found, answer, 0, 4)
    device.queue.submit([encoder.finish()])
    await answer.mapAsync(READ)
    const [found] = new Uint32Array(answer.getMappedRange())
    answer.unmap()
    return found!
  }
}
