/** Of what workers and the store process say to each other, and of the saved state: another one is not understood. */
export const LAYOUT = 1
