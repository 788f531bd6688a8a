/**
 * Sections of the contract on a service in this process, for test/mutants.config.mjs: the third of three files.
 * Sections that start services of their own are in none.
 */

import { onSections } from '../sections.ts'

onSections('paths and methods', 'score and IP rules', 'puzzles', 'limits for browsers', 'limits for backends')
