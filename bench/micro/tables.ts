/** Formats the figures as tables. */

import { isDisturbed } from '../solver/disturbance.ts'
import type { Spread } from '../support/statistics.ts'
import { type Column, renderTable, spreadText } from '../support/table.ts'
import { UNDER_WAY } from './passes.ts'
import { type Aim, count, type Measured, type MicroReport, type Other, type Row } from './report.ts'

export interface Table {
  readonly title: string
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly string[])[]
}

const left = (title: string): Column => ({ title, align: 'left' })
const right = (title: string): Column => ({ title, align: 'right' })

export function stepTable(rows: readonly Row[]): Table {
  const columns = [
    left('area'),
    left('step'),
    right('ns'),
    right('per second'),
    right('garbage, bytes'),
    right('plain: ns'),
    right('garbage, bytes'),
    right('times faster'),
    left('notes'),
  ]
  return { title: 'Steps', columns, rows: rows.map(stepCells) }
}

function stepCells({ name, area, ours, naive }: Row): string[] {
  const cells = [area, name, nsText(ours.ns), count(ours.perSecond.median), spreadText(ours.garbageBytes, 0)]
  const naiveCells =
    naive === undefined
      ? ['', '', '']
      : [nsText(naive.ns), spreadText(naive.garbageBytes, 0), spreadText(naive.timesFaster, 1)]
  return [...cells, ...naiveCells, notes(naive?.note ?? '', ours)]
}

/** undefined if none were measured. */
export function peerTable(rows: readonly Row[]): Table | undefined {
  const compared = rows.filter(({ peers }) => peers.length > 0)
  if (compared.length === 0) return undefined
  const columns = [
    left('request'),
    left('by'),
    right('ns'),
    right('CPU ns'),
    right('per second'),
    right('garbage, bytes'),
    right('powgate: times faster'),
    right('times less CPU'),
    left('notes'),
  ]
  return { title: 'Beside npm packages', columns, rows: compared.flatMap(peerRows) }
}

function peerRows({ name, ours, peers }: Row): string[][] {
  return [
    [name, 'powgate', ...measuredCells(ours), '', '', notes('', ours)],
    ...peers.map(peer => [
      name,
      peer.label,
      ...measuredCells(peer),
      ...timesCells(peer),
      notes(peer.note, peer),
    ]),
  ]
}

function measuredCells({ ns, cpuNs, perSecond, garbageBytes }: Measured): string[] {
  return [nsText(ns), nsText(cpuNs), count(perSecond.median), spreadText(garbageBytes, 0)]
}

function timesCells({ timesFaster, timesLessCpu }: Other): string[] {
  return [spreadText(timesFaster, 1), spreadText(timesLessCpu, 1)]
}

/** Short times with a digit more. */
function nsText(ns: Spread): string {
  return spreadText(ns, ns.median < 100 ? 1 : 0)
}

function notes(note: string, { othersBusy }: Measured): string {
  const disturbance = isDisturbed({ othersBusy })
    ? `others used ${(othersBusy! * 100).toFixed(0)}% of a core`
    : ''
  return [note, disturbance].filter(text => text !== '').join('; ')
}

export function aimLine({ about, isMet, found }: Aim): string {
  return `aim: ${about}: ${isMet ? 'met' : 'NOT met'}, ${found}`
}

export function legend({ surroundings, repeat, milliseconds }: MicroReport): string {
  const { cpu, cores, node, openssl, loadAverage, peers } = surroundings
  const versions = Object.entries(peers).map(([name, version]) => `, ${name} ${version}`)
  return `${cpu}, ${cores} cores, Node.js ${node}, OpenSSL ${openssl}${versions.join('')}; load average at the start ${loadAverage.toFixed(1)}.
Median (range) of ${repeat} processes for each way, in turn, ${milliseconds} ms each after as long to warm up; the same seeded
inputs in every run, every result checked. Times are means over all that was run, garbage collection included; ratios within a round.
Garbage: growth of the heap and of buffers outside of it per operation. Packages are asynchronous: ${UNDER_WAY} calls under way, some
of their work on other threads, which their CPU time includes. plain: node:crypto and the language alone.`
}

export function reportText(report: MicroReport): string {
  const peers = peerTable(report.rows)
  const tables = [stepTable(report.rows), ...(peers === undefined ? [] : [peers])]
  const parts = tables.map(({ columns, rows }) => renderTable(columns, rows))
  if (report.aims.length > 0) parts.push(report.aims.map(aimLine).join('\n'))
  return [...parts, legend(report)].join('\n\n')
}
