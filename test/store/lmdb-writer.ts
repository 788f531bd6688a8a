/** A process that writes to the state in the directory that it is given, until it is killed. */

import { openState } from '../../src/store/embedded/environment.ts'
import { Random } from '../torture/random.ts'

const { file, windows } = openState(process.argv[2]!)
const random = new Random(17)
const write = () => {
  file.write(() => windows.putSync(random.bytes(2), random.bytes(50)))
  setImmediate(write)
}
write()
process.send!('writes')
process.on('disconnect', () => process.exit())
